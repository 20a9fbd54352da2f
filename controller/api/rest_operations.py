"""REST: for those who operate the controller: version, probes, metrics."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from controller.api.metrics import CONTENT_TYPE
from controller.api.problems import problem_responses
from controller.api.rest_common import Administrator, Reader, TheApi, TheService
from controller.errors import InvalidRequest, Unavailable
from controller.model.requests import ViewName
from controller.model.views import HealthView, Sizes

router = APIRouter(tags=["operations"])


@dataclass(frozen=True, kw_only=True)
class VersionView:
    """Which controller this is."""

    name: str
    version: str
    api: str
    python: str


@dataclass(frozen=True, kw_only=True)
class ProbeView:
    """An answer for a supervisor."""

    status: str


@dataclass(frozen=True, kw_only=True)
class ReadyView:
    """An answer for a load balancer or a script that waits."""

    ready: bool
    reason: str


def _version() -> str:
    try:
        return version("mstcp")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


@router.get("/v1/version")
async def show_version(_: Reader) -> VersionView:
    """Say which controller this is."""
    python = ".".join(map(str, sys.version_info[:3]))
    return VersionView(name="mstcp-controller", version=_version(), api="v1", python=python)


@router.get("/healthz")
async def is_alive(service: TheService) -> ProbeView:
    """Say that the process lives: its core answers. Needs no token and tells nothing of the network."""
    await service.view(ViewName.HOSTS, tuple)
    return ProbeView(status="ok")


@router.get(
    "/readyz",
    responses={503: {"model": ReadyView, "description": "Something is missing yet."}},
)
async def is_ready(service: TheService, response: Response) -> ReadyView:
    """Say whether flows can be served everywhere: 200, or 503 with what is missing. Needs no token."""
    health = (await service.view(ViewName.HEALTH, HealthView))[0]
    if health.ready:
        return ReadyView(ready=True, reason="")
    response.status_code = 503
    missing = sum(not each.connected for each in health.switches)
    unconfirmed = sum(each.connected and not each.rules_confirmed for each in health.switches)
    reason = (
        f"{missing} switches are not connected, {unconfirmed} have not confirmed their routes, "
        f"{len(health.links_down)} links are down"
    )
    return ReadyView(ready=False, reason=reason)


@router.post(
    "/v1/configuration/reload",
    status_code=204,
    responses=problem_responses(422, 503),
)
async def reload(api: TheApi, _: Administrator) -> None:
    """Read configuration, topology and certificates again, as SIGHUP does; 422: nothing was changed."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[str | None] = loop.create_future()

    def settle(reason: str | None) -> None:
        if not outcome.done():  # its client may have gone
            outcome.set_result(reason)

    await asyncio.to_thread(api.reload, lambda reason: loop.call_soon_threadsafe(settle, reason))
    try:
        reason = await asyncio.wait_for(outcome, api.service.timeout_s)
    except asyncio.TimeoutError:
        raise Unavailable("", "the controller has not said yet whether it is applied") from None
    if reason is not None:
        raise InvalidRequest("configuration", f"is as before: {reason}")


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses=problem_responses(),
)
async def metrics(api: TheApi, _: Reader) -> Response:
    """Give all figures in Prometheus' text format."""
    sizes = (await api.service.view(ViewName.SIZES, Sizes))[0]
    text = api.service.metrics.text(sizes, api.queues(), api.service.waiting, api.dropped_packets())
    return Response(text, media_type=CONTENT_TYPE)
