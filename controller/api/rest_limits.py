"""Limits and counts of all REST operations, in front of the framework."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.api.metrics import Metrics

MAX_BODY_BYTES = 1 << 20
"""A body may be so large; the largest request that makes sense has some 200 KiB."""


class LimitBody:
    """Refuses bodies that are too large (413) before they are in memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BODY_BYTES:
                raise HTTPException(413, f"the body has more than {MAX_BODY_BYTES} bytes")
            return message

        await self._app(scope, limited, send)


class CountAnswers:
    """Counts answers by method, route and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Paths that clients make up are no labels: those without a route are one.
                route = getattr(scope.get("route"), "path", "none")
                method = scope["method"] if route != "none" else "any"
                self._metrics.answered(method, route, message["status"])
            await send(message)

        await self._app(scope, receive, counted)
