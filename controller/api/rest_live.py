"""REST: the controller's page, and the snapshot that it asks for each second."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

from controller.api.live import LiveDocument
from controller.api.problems import problem_responses
from controller.api.rest_common import Reader, TheApi

__all__ = ["router"]

router = APIRouter()

PAGE = Path(__file__).parent / "page"
"""Built from web/ by `make web`."""

_FILES = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}

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


@router.get("/", include_in_schema=False)
async def page() -> FileResponse:
    """Show the network, its flows and what would happen if, in a browser."""
    return FileResponse(PAGE / "index.html", media_type="text/html", headers=_PROTECTION)


@router.get("/page/{name}", include_in_schema=False)
async def page_file(name: str) -> FileResponse:
    """Return a part of the page."""
    if name not in _FILES:
        raise HTTPException(404, "the page has no such part")
    return FileResponse(PAGE / name, media_type=_FILES[name], headers=_PROTECTION)


@router.get(
    "/v1/live",
    tags=["network"],
    responses={200: {"model": LiveDocument}, **problem_responses()},
)
async def live(
    api: TheApi,
    _: Reader,
    accept_encoding: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Show all that changes: links, nodes, flows and figures, as they were less than a second ago."""
    packed = await api.live.latest()
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if "gzip" not in accept_encoding.lower():
        return Response(packed.plain, media_type="application/json", headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(packed.gzipped, media_type="application/json", headers=headers)
