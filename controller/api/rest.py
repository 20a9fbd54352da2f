"""REST: JSON over HTTP for people and scripts, described by OpenAPI at /docs."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline
from gomr import OBJECTIVES

from controller.api import (
    rest_events,
    rest_flows,
    rest_network,
    rest_operations,
    rest_page,
    rest_replicas,
)
from controller.api.problems import Problem, add_error_handlers, problem_responses
from controller.api.rest_common import Api, no_unknown_parameters
from controller.api.rest_limits import CountAnswers, LimitBody
from controller.api.rest_replicas import SendToLeader
from controller.api.same_site import SameSite
from controller.api.service import Service

_DESCRIPTION = """ Ask the controller for a rate between two hosts: it computes the globally optimal split
over all paths, pins one path to each TCP connection in every switch, and answers with the streams to open and
the rate of each.

All rates are **goodput** (application bytes) in bit/s unless a field says wire rate; times are seconds. A
flow lives as long as its **lease**: renew it (`POST /v1/flows/{flow_id}/renew`) or it ends. Every refusal
is a problem document (RFC 9457) with `code`, `field` and `reason`.

Objectives:
"""

_OPEN = ("/healthz", "/readyz")
"""Operations that need no token."""


def make_app(api: Api | Service) -> FastAPI:
    """Return the ASGI application that offers a service."""
    if isinstance(api, Service):
        api = Api(api)
    objectives = "\n".join(f"- `{name}`: {text}" for name, text in OBJECTIVES.items())
    app = FastAPIOffline(
        title="MSTCP controller",
        version="1",
        description=_DESCRIPTION + objectives,
        redoc_url=None,
        static_url="/docs/static",
        responses=problem_responses(422, 500, 503),
        dependencies=[Depends(no_unknown_parameters)],
    )
    app.state.api = api
    add_error_handlers(app)
    for module in (
        rest_flows,
        rest_network,
        rest_events,
        rest_operations,
        rest_page,
        rest_replicas,
    ):
        app.include_router(module.router)
    if api.replica is not None:
        scheme = "https" if api.is_protected else "http"
        app.add_middleware(SendToLeader, replica=api.replica, scheme=scheme)
    app.add_middleware(LimitBody)
    app.add_middleware(SameSite, access=api.access)
    app.add_middleware(CountAnswers, metrics=api.service.metrics)
    _describe(app, api)
    return app


def _describe(app: FastAPI, api: Api) -> None:
    """Add to the OpenAPI document what the framework does not know."""
    generate = app.openapi
    documents: dict[bool, dict[str, Any]] = {}  # every request looks into it: described once

    def openapi() -> dict[str, Any]:
        needs_token = api.access.is_required
        if needs_token not in documents:
            app.openapi_schema = None  # the framework's own copy is of the other kind
            documents[needs_token] = _described(generate(), needs_token)
        return documents[needs_token]

    app.openapi = openapi  # type: ignore[method-assign]


def _described(document: dict[str, Any], needs_token: bool) -> dict[str, Any]:
    for operations in document["paths"].values():
        for operation in operations.values():
            _describe_parameters(operation)
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    if needs_token:
        _describe_tokens(document)
    return document


def _describe_parameters(operation: dict[str, Any]) -> None:
    """Let parameters that may be left out not be null: a header or a query has no such value."""
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
        if len(choices) == 1:
            del schema["anyOf"]
            schema.update(choices[0])


def _describe_tokens(document: dict[str, Any]) -> None:
    scheme = {"type": "http", "scheme": "bearer", "description": "A token of the controller's configuration."}
    document["components"]["securitySchemes"] = {"token": scheme}
    for path, operations in document["paths"].items():
        if path not in _OPEN:
            for operation in operations.values():
                operation["security"] = [{"token": []}]
                for status, response in problem_responses(401, 403).items():
                    operation["responses"].setdefault(str(status), response)
