"""The page and what it reads, over HTTP. Nothing can be changed here, and nothing but what is named is read.

Every answer below `/api` asks for the token that the page has from its address (`#token=…`, which browsers do
not send): neither another user of the machine nor a page of another site has it.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from experiments.web.documents import PARTS, NoSuchRun, OpenDocument
from experiments.web.event_log import EventLog

PAGE = Path(__file__).resolve().parents[1] / "page"
FILES = {
    "page.js": "text/javascript",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
    "licenses.txt": "text/plain",
}
API = "/api/"
HEARTBEAT_S = 15.0
RETRY_MS = 1000
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass
class Readers:
    """The pages that follow the events: wakes them when there is something new, and counts them."""

    count: int = 0
    closed: bool = False
    _waiting: set[asyncio.Event] = field(default_factory=set)

    def wake(self) -> None:
        """Wake everyone who waits; called in the server's loop."""
        for event in self._waiting:
            event.set()

    def close(self) -> None:
        """End the streams once all events are sent; called in the server's loop."""
        self.closed = True
        self.wake()

    async def wait(self, timeout_s: float) -> None:
        """Wait until there may be something new, or `timeout_s` have passed."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            await asyncio.wait_for(event.wait(), timeout_s)
        except asyncio.TimeoutError:
            pass
        finally:
            self._waiting.discard(event)


@dataclass(frozen=True)
class Content:
    """What the page shows: documents, which it names by their indices, and what is run at the moment.

    `watch` is None for finished results; `log` has what happens meanwhile, `readers` are those who follow it.
    """

    documents: Sequence[OpenDocument]
    watch: Callable[[], Mapping[str, Any]] | None = None
    log: EventLog = field(default_factory=EventLog)
    readers: Readers = field(default_factory=Readers)


def make_app(content: Content, token: str, hosts: Sequence[str]) -> ASGIApp:
    """Return the ASGI application, whose `/api` asks for the token.

    `hosts` is what `Host` may be, with the port: another name could be a site's that was made to lead here.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    _serve_page(app)
    _serve_documents(app, content)
    _serve_events(app, content)
    return Guard(app, token, hosts)


class Guard:
    """Refuses what is not the page's, and sends browsers the security headers."""

    def __init__(self, app: ASGIApp, token: str, hosts: Sequence[str]) -> None:
        self._app = app
        self._authorization = f"Bearer {token}".encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        app = self._refusal(Request(scope)) or self._app if scope["type"] == "http" else self._app
        await app(scope, receive, send_secured)

    def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("host", "") not in self._hosts:
            return problem(HTTPStatus.FORBIDDEN, f"ask for this page as {self._hosts[0]}")
        if request.method not in ("GET", "HEAD"):
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "nothing can be changed here")
        given = request.headers.get("authorization", "").encode()
        if not request.url.path.startswith(API) or hmac.compare_digest(given, self._authorization):
            return None
        detail = "the address lacks its token: open the whole address that mstcp-lab printed"
        return problem(HTTPStatus.UNAUTHORIZED, detail)


def problem(status: HTTPStatus, detail: str) -> JSONResponse:
    """Return a refusal (RFC 9457)."""
    text = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return JSONResponse(text, status.value, media_type="application/problem+json")


def _serve_page(app: FastAPI) -> None:
    @app.get("/")
    async def page() -> Response:
        return FileResponse(PAGE / "index.html", media_type="text/html")

    @app.get("/page/{name}")
    async def file(name: str) -> Response:
        if name not in FILES:
            return problem(HTTPStatus.NOT_FOUND, "there is no such file")
        return FileResponse(PAGE / name, media_type=FILES[name])


def _serve_documents(app: FastAPI, content: Content) -> None:
    # Not coroutines: they read files, and are run in threads.
    @app.get("/api/session")
    def session() -> dict[str, Any]:
        watch = content.watch() if content.watch else None
        return {"documents": len(content.documents), "watch": watch}

    @app.get("/api/documents/{index}")
    def overview(index: int) -> Response:
        if not 0 <= index < len(content.documents):
            return problem(HTTPStatus.NOT_FOUND, "there are no such results")
        return JSONResponse(content.documents[index].overview())

    @app.get("/api/documents/{index}/runs/{number}/{part}")
    def part(index: int, number: int, part: str) -> Response:
        if not 0 <= index < len(content.documents) or part not in PARTS:
            return problem(HTTPStatus.NOT_FOUND, "there are no such results")
        try:
            return JSONResponse(content.documents[index].part(number, part))
        except NoSuchRun:
            return problem(HTTPStatus.NOT_FOUND, "the run has no result (yet)")


def _serve_events(app: FastAPI, content: Content) -> None:
    async def counted() -> AsyncIterator[None]:
        """Count a page for as long as it is answered: a generator whose page has gone may end much later."""
        content.readers.count += 1
        try:
            yield
        finally:
            content.readers.count -= 1

    @app.get(
        "/api/events", response_class=EventSourceResponse, dependencies=[Depends(counted, scope="request")]
    )
    async def events(
        last_event_id: str = Header(default="0", max_length=20),
    ) -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(comment="events follow", retry=RETRY_MS)
        last = int(last_event_id) if last_event_id.isdecimal() else 0
        while True:
            entries = content.log.after(last)
            for entry in entries:
                last = entry.number
                yield ServerSentEvent(raw_data=entry.text, id=str(last))
            if not entries and content.readers.closed:
                return
            if not entries:
                await content.readers.wait(HEARTBEAT_S)
                yield ServerSentEvent(comment="still here")
