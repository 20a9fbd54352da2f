"""What all REST operations share: who asks, the service, and parameters that several have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Protocol, TypeVar, cast

from fastapi import Depends, Header, Request
from fastapi import Path as PathParameter
from starlette.exceptions import HTTPException

from controller.api.idempotency import IdempotencyStore
from controller.api.live import LiveSnapshots
from controller.api.problems import CLIENT_CLOSED
from controller.api.service import Service
from controller.configuration.access import Access, AccessRole
from controller.errors import InvalidRequest
from controller.model.callers import Caller
from controller.model.records import Holder
from controller.model.views import FlowView
from topologies.layout import Point

ETAG_HEADER = {"ETag": {"description": "For If-Match.", "schema": {"type": "string"}}}
"""Describes the header for OpenAPI."""

EVENT_HEADER = {
    "Last-Event-ID": {
        "description": "Of the last event that is in the answer already: /v1/events goes on from there.",
        "schema": {"type": "string"},
    }
}
"""The same for the header by which clients follow events from an answer on."""

_CLIENT_CHECK_S = 0.1

_MAX_TIMEOUT_S = 30.0
"""A client may give its request so much time; then the controller gives it up by itself."""

_T = TypeVar("_T")


class ReplicaView(Protocol):
    """What clients may know of replicas."""

    @property
    def is_leading(self) -> bool:
        """Whether this one may decide."""

    @property
    def holder(self) -> Holder | None:
        """Who leads, as far as this one knows."""

    @property
    def standing(self) -> str:
        """What this one is: leader, follower, candidate or fenced."""

    @property
    def age_s(self) -> float:
        """How old what this one knows may be, in seconds."""

    def step_down(self) -> bool:
        """Let another one lead; returns False where this one does not."""


@dataclass
class Api:
    """What REST offers.

    Attributes:
        service: What clients can do.
        access: Who may.
        queues: Says how many events of each kind wait for the core.
        dropped_packets: Says how many packets of hosts were dropped.
        live: The snapshots that all pages share.
        places: Where nodes are drawn, by their names; empty until somebody looks.
        replica: Which replica leads; None: this controller is alone.
        is_protected: It is served by TLS.
        longest_stream_s: A stream of events is ended after so long, and its client resumes it.
        reload: Reads configuration and topology again, and tells from any thread why they were refused; None:
            they are applied.
    """

    service: Service
    access: Access = field(default_factory=Access)
    queues: Callable[[], dict[str, int]] = dict
    dropped_packets: Callable[[], int] = lambda: 0
    replica: ReplicaView | None = None
    is_protected: bool = False
    longest_stream_s: float | None = None
    reload: Callable[[Callable[[str | None], object]], object] = lambda done: done(None)
    idempotency: IdempotencyStore[tuple[FlowView, str]] = field(default_factory=IdempotencyStore)
    live: LiveSnapshots = field(init=False)
    places: dict[str, Point] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.live = LiveSnapshots(self.service)


def _api(request: Request) -> Api:
    return cast(Api, request.app.state.api)


def _service(request: Request) -> Service:
    return _api(request).service


def no_unknown_parameters(request: Request) -> None:
    """Refuse query parameters that an operation does not have: they are mistakes to point out."""
    operations = request.app.openapi()["paths"].get(request.scope["route"].path, {})
    parameters = operations.get(request.method.lower(), {}).get("parameters", ())
    known = {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
    for name in request.query_params:
        if name not in known:
            has = ", ".join(sorted(known)) or "none"
            raise InvalidRequest(name[:64], f"there is no such query parameter here; there are: {has}")


def _needs(role: AccessRole) -> Callable[[Request], Awaitable[Caller]]:
    async def caller(request: Request) -> Caller:
        address = "" if request.client is None else request.client.host
        return _api(request).access.caller(request.headers.get("authorization"), role, address)

    return caller


TheApi = Annotated[Api, Depends(_api)]
TheService = Annotated[Service, Depends(_service)]

Reader = Annotated[Caller, Depends(_needs(AccessRole.READ))]
Requester = Annotated[Caller, Depends(_needs(AccessRole.REQUEST))]
Administrator = Annotated[Caller, Depends(_needs(AccessRole.ADMINISTER))]

FlowId = Annotated[
    str,
    PathParameter(
        max_length=64, description="As given in the answer to the request.", examples=["3fa2c07be1d45a69"]
    ),
]
LinkId = Annotated[
    str,
    PathParameter(max_length=80, description="Named in either direction.", examples=["S2-S3"]),
]
SwitchName = Annotated[str, PathParameter(max_length=64, examples=["S0"])]

RequestTimeout = Annotated[
    float | None,
    Header(
        alias="Request-Timeout",
        ge=0.001,
        le=_MAX_TIMEOUT_S,
        allow_inf_nan=False,
        description="Seconds that the client waits; what is not done by then is undone (504).",
        examples=[5.0],
    ),
]
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1024,
        description="ETag of what the client has seen: if it has changed since, the answer is 412.",
        examples=['"3"'],
    ),
]


def etag_of(revision: int) -> str:
    """Return the ETag of a revision."""
    return f'"{revision}"'


def revisions_of(if_match: str | None) -> frozenset[int] | None:
    """Return the revisions that an If-Match header names; None where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    tags = (tag.strip() for tag in if_match.split(","))
    # A weak tag never matches (RFC 9110, 13.1.1), nor does one that is none of ours.
    return frozenset(int(tag[1:-1]) for tag in tags if _is_revision(tag))


def _is_revision(tag: str) -> bool:
    number = tag[1:-1]
    is_number = number.isascii() and number.isdigit() and len(number) < 19
    return len(tag) > 2 and tag[0] == tag[-1] == '"' and is_number


async def unless_client_leaves(connection: Request, asked: Awaitable[_T]) -> _T:
    """Return the answer; if the client closes its connection before, what it asked is cancelled."""
    task = asyncio.ensure_future(asked)
    try:
        while True:
            done, _ = await asyncio.wait((task,), timeout=_CLIENT_CHECK_S)
            if done:
                return task.result()
            if await connection.is_disconnected():
                raise HTTPException(CLIENT_CLOSED, "the client closed its connection")
    finally:
        task.cancel()
