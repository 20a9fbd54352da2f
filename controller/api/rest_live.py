"""REST: the snapshot that a page asks for each second."""

from __future__ import annotations

from fastapi import APIRouter, Response

from controller.api.live import LiveDocument
from controller.api.packed import AcceptEncoding, send
from controller.api.problems import problem_responses
from controller.api.rest_common import Reader, TheApi

router = APIRouter(tags=["network"])


@router.get("/v1/live", responses={200: {"model": LiveDocument}, **problem_responses()})
async def live(api: TheApi, _: Reader, accept_encoding: AcceptEncoding = "") -> Response:
    """Show all that changes: links, nodes, flows and figures, as they were less than a second ago."""
    packed = await api.live.latest()
    return send(packed, "application/json", accept_encoding, {"Cache-Control": "no-store"})
