"""Protects who uses a browser: pages of other sites can change nothing, nor read under a name of theirs."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from controller.api.problems import problem
from controller.configuration.access import Access
from controller.errors import ErrorCode

_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class SameSite:
    """Refuses what a page of another site has a browser send; programs that are no browsers notice nothing.

    - A request that changes something must not come from another origin (`Sec-Fetch-Site`, `Origin`), and its
      body must be declared as JSON, which a form cannot do.
    - On a loopback address, and where no tokens are asked for, `Host` must be an address or `localhost`: a
      name could be another site's that was made to point here (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, field, reason = refusal
        code = ErrorCode.FORBIDDEN if status == 403 else ErrorCode.INVALID
        answer = problem(Request(scope), status, code.value, field, reason)
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return status, header and reason."""
        headers = Headers(scope=scope)
        if not self._access.is_required and _is_loopback(scope) and not _is_address(headers.get("host", "")):
            return 403, "Host", "on a loopback address, ask by address or as localhost; tokens lift this"
        if scope["method"] in _SAFE_METHODS:
            return None
        if not _is_same_origin(headers):
            return 403, "Origin", "a page of another site may not change anything here"
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and media_type != "application/json":
            return 415, "Content-Type", "the body must be application/json"
        return None


def _is_loopback(scope: Scope) -> bool:
    server = scope.get("server")
    try:
        return server is not None and ipaddress.ip_address(server[0]).is_loopback
    except ValueError:
        return False  # a name: no socket of ours


def _is_address(host: str) -> bool:
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        if name == "localhost" or name.endswith(".localhost"):
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same_origin(headers: Headers) -> bool:
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host", "")
