"""REST: flows, and what would happen if."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Header, Query, Request, Response

from controller.api.problems import problem_responses
from controller.api.rest_common import (
    ETAG_HEADER,
    EVENT_HEADER,
    FlowId,
    IfMatch,
    Reader,
    Requester,
    RequestTimeout,
    TheApi,
    TheService,
    etag_of,
    revisions_of,
    unless_client_leaves,
)
from controller.model.events import FlowChanged, FlowReleased, FlowsRequested
from controller.model.preview_views import PreviewView
from controller.model.requests import FlowQuery, FlowRequest, PreviewRequest, RateChange, ViewName
from controller.model.views import FlowPage, FlowView

router = APIRouter()

_ENDS = {"source": "T0", "destination": "T2", "destination_port": 5001, "packet_bytes": 590}
_EXAMPLES = {
    "computed": {"summary": "Paths computed", "value": _ENDS | {"rate_bps": 8.5e6}},
    "split by packets": {
        "summary": "One TCP connection, split packet by packet",
        "value": _ENDS | {"rate_bps": 8.5e6, "splitting": "packets"},
    },
    "by hand": {
        "summary": "Paths and rates given by hand",
        "value": _ENDS
        | {
            "source_ports": [40001, 40002],
            "paths": [
                {"nodes": ["T0", "S0", "S4", "T2"], "rate_bps": 4.25e6},
                {"nodes": ["T0", "S0", "S2", "S3", "S4", "T2"], "rate_bps": 4.25e6},
            ],
        },
    },
}

_PREVIEW_EXAMPLES = {
    "a failure": {"summary": "A link fails", "value": {"fail": {"links": ["S2-S3"]}}},
    "a flow": {"summary": "A flow is requested", "value": {"add": [_EXAMPLES["computed"]["value"]]}},
    "growth": {"summary": "All demands double", "value": {"scale": [{"factor": 2.0}]}},
}

_FLOW: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG_HEADER | EVENT_HEADER}}

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Any text that is new for each request: one that is sent again with the same key within "
        "an hour gets the same answer, and nothing is done twice.",
        examples=["9f7f1b3e"],
    ),
]


@router.post(
    "/v1/flows",
    status_code=201,
    tags=["flows"],
    responses={
        201: {
            "headers": ETAG_HEADER
            | EVENT_HEADER
            | {
                "Location": {"description": "Of the flow.", "schema": {"type": "string"}},
                "Idempotent-Replayed": {
                    "description": "true: the answer to an earlier request.",
                    "schema": {"type": "string"},
                },
            }
        },
        **problem_responses(400, 404, 409, 413, 422, 504),
    },
)
async def request_flow(
    request: Annotated[FlowRequest, Body(openapi_examples=_EXAMPLES)],
    connection: Request,
    response: Response,
    api: TheApi,
    caller: Requester,
    timeout_s: RequestTimeout = None,
    key: IdempotencyKey = None,
) -> FlowView:
    """Ask for a rate; the answer comes when all switches have confirmed. It may grant less."""

    async def ask() -> tuple[FlowView, str]:
        repeated_as = None if key is None else (key, digest)
        asked = api.service.request(request, caller=caller, timeout_s=timeout_s, repeated_as=repeated_as)
        return await unless_client_leaves(connection, asked)

    digest = hashlib.sha256(repr(request).encode()).hexdigest()
    if key is None:
        flow, event_id = await ask()
    else:
        (flow, event_id), is_replayed = await api.idempotency.answer(caller.name, key, digest, ask)
        if is_replayed:
            response.headers["Idempotent-Replayed"] = "true"
    response.headers["Location"] = f"/v1/flows/{flow.flow_id}"
    return _flow((flow, event_id), response)


def _flow(answer: tuple[FlowView, str], response: Response) -> FlowView:
    """Return a flow, with its headers."""
    flow, response.headers["Last-Event-ID"] = answer
    response.headers["ETag"] = etag_of(flow.revision)
    return flow


@router.get(
    "/v1/flows",
    tags=["flows"],
    responses={
        200: {
            "headers": EVENT_HEADER
            | {
                "Link": {
                    "description": 'The next page: <...>; rel="next".',
                    "schema": {"type": "string"},
                },
                "X-Total-Count": {
                    "description": "Flows on all pages.",
                    "schema": {"type": "string"},
                },
            }
        },
        **problem_responses(422),
    },
)
async def list_flows(
    connection: Request,
    response: Response,
    service: TheService,
    _: Reader,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Flows on a page.")] = 1000,
    cursor: Annotated[
        str | None,
        Query(pattern="^[0-9]{1,18}$", description="As in the Link header of the page before."),
    ] = None,
    source: Annotated[str | None, Query(max_length=64, description="Name or address of the sender.")] = None,
    destination: Annotated[
        str | None, Query(max_length=64, description="Name or address of the receiver.")
    ] = None,
    owner: Annotated[str | None, Query(max_length=64)] = None,
    state: Annotated[Literal["installing", "active"] | None, Query()] = None,
    through: Annotated[
        str | None,
        Query(max_length=80, description="A switch, or a link in either direction.", examples=["S2-S3"]),
    ] = None,
) -> tuple[FlowView, ...]:
    """List flows in the order of their requests, page by page (`Link: <...>; rel="next"`)."""
    query = FlowQuery(
        limit=limit,
        after=int(cursor or 0),
        source=source,
        destination=destination,
        owner=owner,
        state=state,
        through=through,
    )
    page, event_id = await service.ask(lambda token: FlowsRequested(token, query), FlowPage)
    response.headers["Last-Event-ID"] = event_id
    response.headers["X-Total-Count"] = str(page.total)
    if page.next_after is not None:
        parameters = {**connection.query_params, "cursor": str(page.next_after)}
        response.headers["Link"] = f'<{connection.url.path}?{urlencode(parameters)}>; rel="next"'
    return page.flows


@router.get(
    "/v1/flows/{flow_id}",
    tags=["flows"],
    responses={**_FLOW, **problem_responses(404, 422)},
)
async def get_flow(flow_id: FlowId, response: Response, service: TheService, _: Reader) -> FlowView:
    """Show one flow; its rates may have changed for the good of the whole since it was requested."""
    return _flow(await service.view(ViewName.FLOW, FlowView, flow_id), response)


@router.patch(
    "/v1/flows/{flow_id}",
    tags=["flows"],
    responses={**_FLOW, **problem_responses(400, 404, 409, 412, 413, 422, 504)},
)
async def change_flow(
    flow_id: FlowId,
    change: RateChange,
    response: Response,
    service: TheService,
    caller: Requester,
    if_match: IfMatch = None,
    timeout_s: RequestTimeout = None,
) -> FlowView:
    """Ask for another rate over the paths that the flow has; renews its lease too."""
    wanted = flow_id, change.rate_bps, caller, revisions_of(if_match)
    return _flow(await service.ask(lambda token: FlowChanged(token, *wanted), FlowView, timeout_s), response)


@router.delete(
    "/v1/flows/{flow_id}",
    status_code=204,
    tags=["flows"],
    responses={204: {"headers": EVENT_HEADER}, **problem_responses(404, 412, 422)},
)
async def release_flow(
    flow_id: FlowId,
    response: Response,
    service: TheService,
    caller: Requester,
    if_match: IfMatch = None,
) -> None:
    """End a flow and remove its rules; one that has ended already is no error."""
    wanted = flow_id, caller, revisions_of(if_match)
    _, event_id = await service.ask(lambda token: FlowReleased(token, *wanted), type(None))
    response.headers["Last-Event-ID"] = event_id


@router.post(
    "/v1/flows/{flow_id}/renew",
    tags=["flows"],
    responses={**_FLOW, **problem_responses(404, 422)},
)
async def renew_flow(flow_id: FlowId, response: Response, service: TheService, caller: Requester) -> FlowView:
    """Let a flow live on for another lease."""
    return _flow(await service.renew_one(flow_id, caller), response)


@router.post("/v1/preview", tags=["flows"], responses=problem_responses(400, 404, 409, 413, 422))
async def preview(
    wanted: Annotated[PreviewRequest, Body(openapi_examples=_PREVIEW_EXAMPLES)],
    connection: Request,
    service: TheService,
    _: Reader,
) -> PreviewView:
    """Tell what would happen if links failed, demands grew or flows were requested; nothing does.

    It is what the controller itself would do: the same optimum, from the rates that flows have now.
    """
    return await unless_client_leaves(connection, service.preview(wanted))
