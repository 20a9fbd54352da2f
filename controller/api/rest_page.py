"""REST: the controller's page, as `make web` built it from web/."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Response
from starlette.exceptions import HTTPException

from controller.api.compressed import AcceptEncoding, CompressedBody, compress, send

router = APIRouter(include_in_schema=False)

_FOLDER = Path(__file__).parent / "page"

_FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "licenses.txt": "text/plain; charset=utf-8",
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


_LEVEL = 9
"""Level of zlib; each file is compressed once."""

IfNoneMatch = Annotated[str, Header()]


@cache
def _file(name: str) -> tuple[CompressedBody, str]:
    """Return a part of the page, as it is sent, and its ETag."""
    content = (_FOLDER / name).read_bytes()
    return compress(content, _LEVEL), f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _answer(name: str, accept_encoding: str, if_none_match: str) -> Response:
    packed, etag = _file(name)
    headers = _PROTECTION | {"ETag": etag}
    if etag in if_none_match:
        return Response(status_code=304, headers=headers)
    return send(packed, _FILES[name], accept_encoding, headers)


@router.get("/")
async def page(accept_encoding: AcceptEncoding = "", if_none_match: IfNoneMatch = "") -> Response:
    """Show the network, its flows and what would happen if, in a browser."""
    return _answer("index.html", accept_encoding, if_none_match)


@router.get("/page/{name}")
async def page_file(
    name: str, accept_encoding: AcceptEncoding = "", if_none_match: IfNoneMatch = ""
) -> Response:
    """Return a part of the page."""
    if name not in _FILES:
        raise HTTPException(404, "the page has no such part")
    return _answer(name, accept_encoding, if_none_match)
