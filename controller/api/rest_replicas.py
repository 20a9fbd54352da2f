"""REST where there are replicas: who leads, and what is not the leader's to answer is sent there."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.api.problems import problem, problem_responses
from controller.api.rest_common import Administrator, Reader, ReplicaView, TheApi
from controller.errors import Conflict, ErrorCode

router = APIRouter(tags=["operations"])

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_ANSWERED_ANYWHERE = ("/v1/preview",)
_NO_LEADER_REASON = "no replica leads at the moment; ask again in a second"


@dataclass(frozen=True, kw_only=True)
class LeaderView:
    """Which replica leads, and what this one is.

    Attributes:
        standing: Of this replica: leader, follower, candidate, fenced; `alone` where there are no others.
        epoch: Since which revision of the store the leader leads.
        rest: Where the leader serves REST; null while nobody leads.
        grpc: Where it serves gRPC.
        age_s: How old what this replica says may be.
    """

    standing: str
    epoch: int | None
    rest: str | None
    grpc: str | None
    age_s: float


def _view(api: TheApi) -> LeaderView:
    replica = api.replica
    if replica is None:
        return LeaderView(standing="alone", epoch=None, rest=None, grpc=None, age_s=0.0)
    holder = replica.holder
    return LeaderView(
        standing=replica.standing,
        epoch=None if holder is None else holder.epoch,
        rest=None if holder is None else holder.rest,
        grpc=None if holder is None else holder.grpc,
        age_s=replica.age_s,
    )


@router.get("/v1/leader")
async def show_leader(api: TheApi, _: Reader) -> LeaderView:
    """Say which replica leads, and what this one is."""
    return _view(api)


@router.post("/v1/leader/step-down", responses=problem_responses(409))
def step_down(api: TheApi, _: Administrator) -> LeaderView:
    """Let another replica lead; this one does not try to for some seconds."""
    if api.replica is None:
        raise Conflict("", "this controller is alone: its store is no etcd, so nobody else can lead")
    api.replica.step_down()
    return _view(api)


class SendToLeader:
    """Answers what changes something with 307 and the leader's address; says how old other answers are."""

    def __init__(self, app: ASGIApp, replica: ReplicaView, scheme: str) -> None:
        self._app = app
        self._replica = replica
        self._scheme = scheme

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if self._replica.is_leading:
            await self._app(scope, receive, send)
        elif scope["method"] in _SAFE_METHODS or scope["path"] in _ANSWERED_ANYWHERE:
            await self._app(scope, receive, self._dated(send))
        else:
            await self._send_away(Request(scope), scope, receive, send)

    def _dated(self, send: Send) -> Send:
        age = str(int(self._replica.age_s))

        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Age"] = age
            await send(message)

        return dated

    async def _send_away(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        holder = self._replica.holder
        if holder is None:
            answer = problem(request, 503, ErrorCode.UNAVAILABLE.value, "", _NO_LEADER_REASON)
        else:
            query = f"?{request.url.query}" if request.url.query else ""
            place = f"{self._scheme}://{holder.rest}{request.url.path}{query}"
            reason = f"another replica leads; ask {place}"
            answer = problem(request, 307, ErrorCode.UNAVAILABLE.value, "", reason, {"Location": place})
        await answer(scope, receive, send)
