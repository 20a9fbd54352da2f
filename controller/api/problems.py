"""Errors of REST: problem details (RFC 9457) for whatever goes wrong, wherever the fault is found."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from controller.api.schema import invalid_request
from controller.errors import ErrorCode, RequestError

LOG = logging.getLogger("controller.api")

MEDIA_TYPE = "application/problem+json"

CLIENT_CLOSED = 499
"""Never seen by anybody."""

_STATUS = {
    ErrorCode.INVALID: 422,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.INFEASIBLE: 409,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.PRECONDITION_FAILED: 412,
    ErrorCode.DEADLINE_EXCEEDED: 504,
}


class Problem(BaseModel):
    """Problem details (RFC 9457): why a request was refused."""

    type: str = Field(description="Always about:blank: `code` says more.", examples=["about:blank"])
    title: str = Field(description="The name of the status.", examples=["Unprocessable Content"])
    status: int = Field(description="The HTTP status.", examples=[422])
    detail: str = Field(description="A sentence.", examples=["rate_bps: must be greater than 0, not -1.0"])
    instance: str = Field(description="The path that was asked for.", examples=["/v1/flows"])
    code: str = Field(
        description="INVALID, NOT_FOUND, CONFLICT, INFEASIBLE, UNAVAILABLE, UNAUTHENTICATED, FORBIDDEN, "
        "PRECONDITION_FAILED or DEADLINE_EXCEEDED.",
        examples=["INVALID"],
    )
    field: str = Field(description="The field to blame; empty if it is none.", examples=["rate_bps"])
    reason: str = Field(
        description="`detail` without the field.", examples=["must be greater than 0, not -1.0"]
    )


_EXAMPLES = {
    400: ("The body is not text.", "INVALID", "body", "There was an error parsing the body"),
    401: ("No token, or an unknown one.", "UNAUTHENTICATED", "Authorization", "a token is needed"),
    403: ("The token does not allow this.", "FORBIDDEN", "flow_id", "b01f is another client's"),
    404: (
        "There is no such host, flow, link or switch.",
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
    412: (
        "It has changed since the client looked at it.",
        "PRECONDITION_FAILED",
        "flow_id",
        "b01f has changed meanwhile (it has revision 3); look again",
    ),
    413: ("The body is too large.", "INVALID", "body", "has more than 1048576 bytes"),
    422: (
        "A field has a value that no network could serve.",
        "INVALID",
        "rate_bps",
        "must be greater than 0, not -1.0",
    ),
    500: ("The controller failed; its log says why.", "UNAVAILABLE", "", "the controller failed"),
    503: (
        "A switch did not confirm in time, or the controller is busy or stopping; nothing was changed.",
        "UNAVAILABLE",
        "",
        "S2 did not confirm the rules within 3 s",
    ),
    504: (
        "The time that the client gave is over; nothing was changed.",
        "DEADLINE_EXCEEDED",
        "",
        "the controller did not answer within 0.5 s",
    ),
}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of an operation for OpenAPI."""
    described: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        text, code, field, reason = _EXAMPLES[status]
        example = _problem(status, code, field, reason, "/v1/flows").model_dump()
        schema = {"$ref": "#/components/schemas/Problem"}
        described[status] = {
            "description": text,
            "content": {MEDIA_TYPE: {"schema": schema, "example": example}},
        }
    return described


def problem(
    request: Request, status: int, code: str, field: str, reason: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return an answer that says what went wrong."""
    body = _problem(status, code, field, reason, request.url.path)
    return JSONResponse(body.model_dump(), status, headers, media_type=MEDIA_TYPE)


def _problem(status: int, code: str, field: str, reason: str, instance: str) -> Problem:
    return Problem(
        type="about:blank",
        title=HTTPStatus(status).phrase if status != CLIENT_CLOSED else "Client Closed Request",
        status=status,
        detail=f"{field}: {reason}" if field else reason,
        instance=instance,
        code=code,
        field=field,
        reason=reason,
    )


def add_error_handlers(app: FastAPI) -> None:
    """Give every refusal the same shape, wherever the fault was found."""

    @app.exception_handler(RequestError)
    async def refused(request: Request, error: RequestError) -> JSONResponse:
        headers = {"WWW-Authenticate": "Bearer"} if error.code is ErrorCode.UNAUTHENTICATED else None
        status = _STATUS[error.code]
        return problem(request, status, error.code.value, error.field, error.reason, headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        first = invalid_request(list(error.errors()))
        return problem(request, 422, first.code.value, first.field, first.reason)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        code = ErrorCode.NOT_FOUND if error.status_code == 404 else ErrorCode.INVALID
        reason = f"{error.detail}: {request.method} {request.url.path}; /docs lists what there is"
        headers = dict(error.headers) if error.headers else {}
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods(app, request.url.path))
        field = "body" if error.status_code in (400, 413) else ""
        return problem(request, error.status_code, code.value, field, reason, headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
        reason = f"the controller failed on this request ({type(error).__name__}); its log says more"
        return problem(request, 500, ErrorCode.UNAVAILABLE.value, "", reason)


def _methods(app: FastAPI, path: str) -> list[str]:
    """Return the methods that a path has; the framework names those of the first route alone."""
    methods = {
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in operations
    }
    return sorted(methods or {"GET"})
