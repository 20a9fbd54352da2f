"""REST: the controller's page, and the snapshot that it asks for each second."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Response
from starlette.exceptions import HTTPException

from controller.api.live import LiveDocument
from controller.api.problems import problem_responses
from controller.api.rest_common import Reader, TheApi

__all__ = ["router"]

router = APIRouter()

PAGE = Path(__file__).parent / "page"
"""Built from web/ by `make web`."""

_FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

_PROTECTION = {
    # cytoscape and uPlot set styles by script, which is no inline style; nothing comes from elsewhere.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # With the ETag, an unchanged file costs an answer without a body; a new version is seen at once.
    "Cache-Control": "no-cache",
}


AcceptEncoding = Annotated[str, Header(include_in_schema=False)]
IfNoneMatch = Annotated[str, Header(include_in_schema=False)]


@dataclass(frozen=True)
class _File:
    """A part of the page, as it is sent."""

    plain: bytes
    gzipped: bytes
    etag: str


@cache
def _file(name: str) -> _File:
    content = (PAGE / name).read_bytes()
    return _File(content, gzip.compress(content, mtime=0), f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _send(name: str, accept_encoding: str, if_none_match: str) -> Response:
    file = _file(name)
    headers = _PROTECTION | {"ETag": file.etag, "Vary": "Accept-Encoding"}
    if file.etag in if_none_match:
        return Response(status_code=304, headers=headers)
    return _packed(file.plain, file.gzipped, _FILES[name], accept_encoding, headers)


def _packed(
    plain: bytes, gzipped: bytes, media_type: str, accept_encoding: str, headers: dict[str, str]
) -> Response:
    if "gzip" not in accept_encoding.lower():
        return Response(plain, media_type=media_type, headers=headers)
    return Response(gzipped, media_type=media_type, headers=headers | {"Content-Encoding": "gzip"})


@router.get("/", include_in_schema=False)
async def page(accept_encoding: AcceptEncoding = "", if_none_match: IfNoneMatch = "") -> Response:
    """Show the network, its flows and what would happen if, in a browser."""
    return _send("index.html", accept_encoding, if_none_match)


@router.get("/page/{name}", include_in_schema=False)
async def page_file(
    name: str, accept_encoding: AcceptEncoding = "", if_none_match: IfNoneMatch = ""
) -> Response:
    """Return a part of the page."""
    if name not in _FILES:
        raise HTTPException(404, "the page has no such part")
    return _send(name, accept_encoding, if_none_match)


@router.get(
    "/v1/live",
    tags=["network"],
    responses={200: {"model": LiveDocument}, **problem_responses()},
)
async def live(api: TheApi, _: Reader, accept_encoding: AcceptEncoding = "") -> Response:
    """Show all that changes: links, nodes, flows and figures, as they were less than a second ago."""
    packed = await api.live.latest()
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    return _packed(packed.plain, packed.gzipped, "application/json", accept_encoding, headers)
