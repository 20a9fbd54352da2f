"""REST: the network, its links, switches and hosts, and a snapshot of all that changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Response

from controller.api.compressed import AcceptEncoding, send
from controller.api.live import LiveDocument
from controller.api.problems import problem_responses
from controller.api.rest_common import (
    ETAG_HEADER,
    EVENT_HEADER,
    Administrator,
    IfMatch,
    LinkId,
    Reader,
    SwitchName,
    TheApi,
    TheService,
    etag_of,
    revisions_of,
)
from controller.errors import NotFound
from controller.model.events import LinkChanged
from controller.model.requests import LinkChange, ViewName
from controller.model.views import (
    HealthView,
    HostView,
    LinkView,
    RulesView,
    SwitchDetailView,
    TopologyView,
)
from topologies.layout import Point, place

router = APIRouter(tags=["network"])

_EVENT: dict[int | str, dict[str, Any]] = {200: {"headers": EVENT_HEADER}}
_LINK: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG_HEADER | EVENT_HEADER}}


@router.get("/v1/topology")
async def topology(api: TheApi, _: Reader) -> TopologyView:
    """Show the network of the topology file, and what of it is up; nodes without a place are given one."""
    view = (await api.service.view(ViewName.TOPOLOGY, TopologyView))[0]
    if not api.places:
        api.places = await asyncio.to_thread(_places, view)  # a second, where the file has none
    placed = ((node, api.places[node.name]) for node in view.nodes)
    return replace(view, nodes=tuple(replace(node, x=x, y=y) for node, (x, y) in placed))


def _places(view: TopologyView) -> dict[str, Point]:
    placed = {node.name: (node.x, node.y) for node in view.nodes if node.x is not None and node.y is not None}
    return place([node.name for node in view.nodes], placed, [link.ends for link in view.links])


@router.get("/v1/links", responses=_EVENT)
async def links(response: Response, service: TheService, _: Reader) -> tuple[LinkView, ...]:
    """List both directions of every link with capacity, allocated and free wire rate."""
    views, response.headers["Last-Event-ID"] = await service.links()
    return views


@router.get(
    "/v1/links/{link_id}",
    responses={**_LINK, **problem_responses(404, 422)},
)
async def link(link_id: LinkId, response: Response, service: TheService, _: Reader) -> tuple[LinkView, ...]:
    """Show both directions of a link."""
    views, response.headers["Last-Event-ID"] = await service.links(link_id)
    response.headers["ETag"] = etag_of(views[0].revision)
    return views


@router.patch(
    "/v1/links/{link_id}",
    responses={**_LINK, **problem_responses(400, 404, 412, 413, 422)},
)
async def change_link(
    link_id: LinkId,
    change: LinkChange,
    response: Response,
    service: TheService,
    caller: Administrator,
    if_match: IfMatch = None,
) -> tuple[LinkView, ...]:
    """Give a link another rate or delay, or take it out of use; flows follow. It survives a restart."""
    wanted = link_id, change, caller, revisions_of(if_match)
    views: tuple[LinkView, ...]
    views, event_id = await service.ask(lambda token: LinkChanged(token, *wanted), tuple)
    response.headers["Last-Event-ID"] = event_id
    response.headers["ETag"] = etag_of(views[0].revision)
    return views


@router.get("/v1/hosts")
async def hosts(service: TheService, _: Reader) -> tuple[HostView, ...]:
    """List the hosts of the topology file and those learned from their ARP packets."""
    return (await service.view(ViewName.HOSTS, tuple))[0]


@router.get("/v1/switches", responses=_EVENT)
async def switches(response: Response, service: TheService, _: Reader) -> tuple[SwitchDetailView, ...]:
    """List the switches with their ports, flows and rules."""
    views, response.headers["Last-Event-ID"] = await service.view(ViewName.SWITCHES, tuple)
    return views


@router.get("/v1/switches/{switch}", responses=problem_responses(404, 422))
async def switch(switch: SwitchName, service: TheService, _: Reader) -> SwitchDetailView:
    """Show one switch."""
    views: tuple[SwitchDetailView, ...]
    views = (await service.view(ViewName.SWITCHES, tuple))[0]
    for view in views:
        if view.name == switch:
            return view
    raise NotFound("switch", f"there is no switch {switch!r}; GET /v1/switches lists them")


@router.get("/v1/switches/{switch}/rules", responses=problem_responses(404, 422))
async def rules(switch: SwitchName, service: TheService, _: Reader) -> RulesView:
    """List the rules and groups that a switch should have, and whose they are."""
    return (await service.view(ViewName.RULES, RulesView, switch))[0]


@router.get("/v1/health")
async def health(service: TheService, _: Reader) -> HealthView:
    """Say whether the network is as it should be; `ready`: flows can be served everywhere."""
    return (await service.view(ViewName.HEALTH, HealthView))[0]


@router.get("/v1/live", responses={200: {"model": LiveDocument}, **problem_responses()})
async def live(api: TheApi, _: Reader, accept_encoding: AcceptEncoding = "") -> Response:
    """Show all that changes: links, nodes, flows and figures, as they were less than a second ago."""
    packed = await api.live.latest()
    return send(packed, "application/json", accept_encoding, {"Cache-Control": "no-store"})
