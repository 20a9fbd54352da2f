"""REST: JSON over HTTP for people and scripts, described by OpenAPI at /docs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Body, FastAPI, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from controller.api.schema import FlowRequestBody, RateChange, invalid_request
from controller.api.service import Service
from controller.core.views import FlowView, HealthView, HostView, LinkView, TopologyView
from controller.errors import ErrorCode, NotFound, RequestError
from controller.gomr import OBJECTIVES

__all__ = ["ErrorBody", "make_app"]

_CLIENT_CHECK_S = 0.1
_CLIENT_CLOSED = 499  # never seen by anybody

_T = TypeVar("_T")

_STATUS = {
    ErrorCode.INVALID: 422,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.INFEASIBLE: 409,
    ErrorCode.UNAVAILABLE: 503,
}

_DESCRIPTION = """ Ask the controller for a rate between two hosts: it computes the globally optimal split
over all paths, pins one path to each TCP connection in every switch, and answers with the streams to open and
the rate of each.

All rates are **goodput** (application bytes) in bit/s unless a field says wire rate; times are seconds. A
flow lives as long as its **lease**: renew it (`POST /v1/flows/{flow_id}/renew`) or it ends. Every refusal has
the same shape, `{"code", "field", "reason"}`.

Objectives:
"""

_EXAMPLES = {
    "computed": {
        "summary": "Paths computed",
        "value": {
            "source": "T0",
            "destination": "T2",
            "destination_port": 5001,
            "rate_bps": 8.5e6,
            "packet_bytes": 590,
        },
    },
    "split by packets": {
        "summary": "One TCP connection, split packet by packet",
        "value": {
            "source": "T0",
            "destination": "T2",
            "destination_port": 5001,
            "rate_bps": 8.5e6,
            "packet_bytes": 590,
            "splitting": "packets",
        },
    },
    "by hand": {
        "summary": "Paths and rates given by hand",
        "value": {
            "source": "T0",
            "destination": "T2",
            "destination_port": 5001,
            "packet_bytes": 590,
            "source_ports": [40001, 40002],
            "paths": [
                {"nodes": ["T0", "S0", "S4", "T2"], "rate_bps": 4.25e6},
                {"nodes": ["T0", "S0", "S2", "S3", "S4", "T2"], "rate_bps": 4.25e6},
            ],
        },
    },
}


class ErrorBody(BaseModel):
    """Why a request was refused."""

    code: str = Field(
        description="INVALID, NOT_FOUND, CONFLICT, INFEASIBLE or UNAVAILABLE.", examples=["INVALID"]
    )
    field: str = Field(description="The field to blame; empty if it is none.", examples=["rate_bps"])
    reason: str = Field(description="A sentence.", examples=["Input should be greater than 0"])


_REFUSALS = {
    404: (
        "There is no such host or flow.",
        "NOT_FOUND",
        "source",
        "there is no host 'T9'; known are T0, T1, T2, T3",
    ),
    409: (
        "A port is in use, capacity is held by other flows, or the network as it is cannot serve it.",
        "INFEASIBLE",
        "destination",
        "T2 cannot be reached from T0 over the links that are up",
    ),
    422: (
        "A field has a value that no network could serve.",
        "INVALID",
        "rate_bps",
        "Input should be greater than 0",
    ),
    503: (
        "A switch did not confirm in time; nothing was changed.",
        "UNAVAILABLE",
        "",
        "S2 did not confirm the rules within 3 s",
    ),
}


def _refusals(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Describe the refusals of an operation for OpenAPI."""
    described: dict[int | str, dict[str, object]] = {}
    for status in statuses:
        text, code, field, reason = _REFUSALS[status]
        example = {"code": code, "field": field, "reason": reason}
        described[status] = {
            "model": ErrorBody,
            "description": text,
            "content": {"application/json": {"example": example}},
        }
    return described


FlowId = Annotated[
    str, PathParameter(description="As given in the answer to the request.", examples=["3fa2-1"])
]


def make_app(service: Service) -> FastAPI:
    """Return the ASGI application that offers a service."""
    objectives = "\n".join(f"- `{name}`: {text}" for name, text in OBJECTIVES.items())
    app = FastAPI(
        title="MSTCP controller",
        version="1",
        description=_DESCRIPTION + objectives,
        redoc_url=None,
        responses=_refusals(503),
    )
    _add_error_handlers(app)
    _add_flows(app, service)
    _add_network(app, service)
    return app


def _add_flows(app: FastAPI, service: Service) -> None:
    @app.post("/v1/flows", status_code=201, tags=["flows"], responses=_refusals(404, 409, 422))
    async def request_flow(
        request: Annotated[FlowRequestBody, Body(openapi_examples=_EXAMPLES)],
        connection: Request,
        response: Response,
    ) -> FlowView:
        """Ask for a rate; the answer comes when all switches have confirmed. It may grant less."""
        flow = await _unless_client_leaves(connection, service.request(request.to_request()))
        response.headers["Location"] = f"/v1/flows/{flow.flow_id}"
        return flow

    @app.get("/v1/flows", tags=["flows"])
    async def list_flows() -> tuple[FlowView, ...]:
        """List all flows."""
        return (await service.snapshot()).flows

    @app.get("/v1/flows/{flow_id}", tags=["flows"], responses=_refusals(404, 422))
    async def get_flow(flow_id: FlowId) -> FlowView:
        """Show one flow; its rates may have changed for the good of the whole since it was requested."""
        for flow in (await service.snapshot()).flows:
            if flow.flow_id == flow_id:
                return flow
        raise NotFound("flow_id", f"there is no flow {flow_id!r}; it may have ended with its lease")

    @app.patch("/v1/flows/{flow_id}", tags=["flows"], responses=_refusals(404, 409, 422))
    async def change_flow(flow_id: FlowId, change: RateChange) -> FlowView:
        """Ask for another rate over the paths that the flow has; renews its lease too."""
        return await service.change(flow_id, change.rate_bps)

    @app.delete("/v1/flows/{flow_id}", status_code=204, tags=["flows"], responses=_refusals(404, 422))
    async def release_flow(flow_id: FlowId) -> None:
        """End a flow and remove its rules; one that has ended already is no error."""
        await service.release(flow_id)

    @app.post("/v1/flows/{flow_id}/renew", tags=["flows"], responses=_refusals(404, 422))
    async def renew_flow(flow_id: FlowId) -> FlowView:
        """Let a flow live on for another lease."""
        await service.renew((flow_id,))
        return await get_flow(flow_id)


async def _unless_client_leaves(connection: Request, asked: Coroutine[Any, Any, _T]) -> _T:
    """Return the answer; if the client closes its connection before, what it asked is cancelled."""
    task = asyncio.ensure_future(asked)
    try:
        while True:
            done, _ = await asyncio.wait((task,), timeout=_CLIENT_CHECK_S)
            if done:
                return task.result()
            if await connection.is_disconnected():
                raise HTTPException(_CLIENT_CLOSED, "the client closed its connection")
    finally:
        task.cancel()


def _add_network(app: FastAPI, service: Service) -> None:
    @app.get("/v1/topology", tags=["network"])
    async def topology() -> TopologyView:
        """Show the network of the topology file, and what of it is up."""
        return (await service.snapshot()).topology

    @app.get("/v1/links", tags=["network"])
    async def links() -> tuple[LinkView, ...]:
        """List both directions of every link with capacity, allocated and free wire rate."""
        return (await service.snapshot()).links

    @app.get("/v1/hosts", tags=["network"])
    async def hosts() -> tuple[HostView, ...]:
        """List the hosts of the topology file and those learned from their ARP packets."""
        return (await service.snapshot()).hosts

    @app.get("/v1/health", tags=["network"])
    async def health() -> HealthView:
        """Say whether the network is as it should be; `ready`: flows can be served everywhere."""
        return (await service.snapshot()).health


def _add_error_handlers(app: FastAPI) -> None:
    """Give every refusal the same shape, wherever the fault was found."""

    @app.exception_handler(RequestError)
    async def refused(_: Request, error: RequestError) -> JSONResponse:
        return _error(_STATUS[error.code], error.code.value, error.field, error.reason)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        found = invalid_request(list(error.errors()))
        return _error(422, found.code.value, found.field, found.reason)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        code = ErrorCode.NOT_FOUND if error.status_code == 404 else ErrorCode.INVALID
        reason = f"{error.detail}: {request.method} {request.url.path}; /docs lists what there is"
        return _error(error.status_code, code.value, "", reason)


def _error(status: int, code: str, field: str, reason: str) -> JSONResponse:
    body = ErrorBody(code=code, field=field, reason=reason)
    return JSONResponse(body.model_dump(), status_code=status)
