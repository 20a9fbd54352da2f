"""What the page needs of REST: its files, its protection, and the snapshot that all browsers share."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import topologies
from controller.api.live import LiveSnapshots
from controller.api.rest import make_app
from controller.api.rest_common import Api
from controller.configuration.access import Access, AccessRole, Token, digest_of
from controller.model.events import PortWentDown
from controller.model.requests import ViewName
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.served_controller import Controller


@pytest.fixture
async def loopback(controller: Controller) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a controller that listens on a loopback address."""
    async with serve(controller) as connected:
        yield connected


def serve(controller: Controller, access: Access | None = None) -> httpx.AsyncClient:
    controller.service.bind(asyncio.get_running_loop())
    app = make_app(Api(controller.service, access or Access()))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8080")


@pytest.mark.parametrize(
    "path", ["/", "/page/page.js", "/page/page.css", "/page/icon.svg", "/page/licenses.txt"]
)
async def test_the_page_is_served_and_runs_nothing_but_itself(loopback: httpx.AsyncClient, path: str) -> None:
    answer = await loopback.get(path)
    assert answer.status_code == 200
    policy = dict(rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_a_part_that_the_browser_has_is_not_sent_again(loopback: httpx.AsyncClient) -> None:
    first = await loopback.get("/page/page.js")
    assert first.headers["Content-Encoding"] == "gzip"
    again = await loopback.get("/page/page.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    plain = await loopback.get("/page/page.js", headers={"Accept-Encoding": "identity"})
    assert plain.content == first.content


@pytest.mark.parametrize("name", ["..%2Frest.py", "rest.py", "sources.sha256", "%2e%2e/rest.py"])
async def test_nothing_but_the_page_is_served(loopback: httpx.AsyncClient, name: str) -> None:
    assert (await loopback.get(f"/page/{name}")).status_code == 404


CROSS_SITE: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("headers", CROSS_SITE)
async def test_other_sites_change_nothing(loopback: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for method, path, body in (
        ("POST", "/v1/flows", REQUEST),
        ("POST", "/v1/flows/x/renew", None),
        ("PATCH", "/v1/links/S0-S4", {"enabled": False}),
        ("DELETE", "/v1/flows/x", None),
    ):
        answer = await loopback.request(method, path, json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN"), (method, path)
        assert "another site" in answer.json()["reason"]
    assert (await loopback.get("/v1/flows")).json() == []


async def test_the_page_itself_and_programs_may_change(loopback: httpx.AsyncClient) -> None:
    own = {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8080"}
    assert (await loopback.post("/v1/flows", json=REQUEST, headers=own)).status_code == 201
    assert (await loopback.post("/v1/flows", json=REQUEST)).status_code == 201


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_what_a_form_can_send_is_no_request(loopback: httpx.AsyncClient, media_type: str) -> None:
    body = json.dumps(REQUEST).encode()
    answer = await loopback.post("/v1/flows", content=body, headers={"Content-Type": media_type})
    assert (answer.status_code, answer.json()["field"]) == (415, "Content-Type")
    with_charset = {"Content-Type": "application/json; charset=utf-8"}
    assert (await loopback.post("/v1/flows", content=body, headers=with_charset)).status_code == 201


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost:8080", 200),
        ("[::1]:8080", 200),
        ("controller.localhost", 200),
        ("evil.example:8080", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("[", 403),
        ("", 403),
    ],
)
async def test_a_name_that_was_pointed_here_reads_nothing(
    controller: Controller, host: str, status: int
) -> None:
    async with serve(controller) as client:
        assert (await client.get("/v1/flows", headers={"Host": host})).status_code == status
    token = Access([Token("reader", AccessRole.READ, digest_of("secret"))])
    async with serve(controller, token) as client:
        headers = {"Host": host, "Authorization": "Bearer secret"}
        answer = await client.get("/v1/flows", headers=headers)
        assert answer.status_code == 200, "a page of another site has no token"


async def test_the_snapshot_is_what_the_other_views_say(loopback: httpx.AsyncClient) -> None:
    flow = (await loopback.post("/v1/flows", json=REQUEST)).json()
    await loopback.patch("/v1/links/S1-S5", json={"enabled": False})
    answer = await loopback.get("/v1/live")
    live = answer.json()
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Cache-Control"] == "no-store"
    links = (await loopback.get("/v1/links")).json()
    for name, values in live["links"].items():
        assert values == [link[name] for link in links], name
    (shown,) = live["flows"]
    common = shown.keys() & flow.keys()
    assert shown.keys() == common
    assert shown["expires_in_s"] == pytest.approx(flow["expires_in_s"], abs=5)
    assert {name: shown[name] for name in common - {"expires_in_s"}} == {
        name: flow[name] for name in common - {"expires_in_s"}
    }
    nodes = (await loopback.get("/v1/topology")).json()["nodes"]
    assert len(live["nodes"]) == len(nodes)
    assert set(live["nodes"]) == {"up"}
    assert live["rules"] == {
        switch["name"]: switch["rules"] for switch in (await loopback.get("/v1/switches")).json()
    }
    figures = live["figures"]
    assert sum(figures["request_to_installed"]["counts"]) == 1
    counts, bounds_s = figures["solve"]["counts"], figures["solve"]["bounds_s"]
    assert len(counts) == len(bounds_s) + 1
    assert figures["events"] >= 1


async def test_one_snapshot_serves_everybody_for_a_second(controller: Controller) -> None:
    loop = asyncio.get_running_loop()
    controller.service.bind(loop)
    now = 0.0
    asked: list[ViewName] = []
    view = controller.service.view

    async def counted(name: ViewName, kind: type[Any], key: str = "") -> Any:
        asked.append(name)
        return await view(name, kind, key)

    controller.service.view = counted  # type: ignore[method-assign]
    snapshots = LiveSnapshots(controller.service, clock=lambda: now)
    first, *others = await asyncio.gather(*(snapshots.latest() for _ in range(20)))
    assert all(other is first for other in others)
    now = 0.99
    assert await snapshots.latest() is first
    assert asked.count(ViewName.LIVE) == 1
    assert json.loads(gzip.decompress(first.gzipped)) == json.loads(first.plain)
    now = 1.01
    assert await snapshots.latest() is not first
    assert asked.count(ViewName.LIVE) == 2


async def test_a_snapshot_that_failed_is_not_kept(controller: Controller) -> None:
    controller.service.bind(asyncio.get_running_loop())
    view = controller.service.view

    async def broken(name: ViewName, kind: type[Any], key: str = "") -> Any:
        raise RuntimeError("once")

    snapshots = LiveSnapshots(controller.service, clock=lambda: 0.0)
    controller.service.view = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        await snapshots.latest()
    controller.service.view = view  # type: ignore[method-assign]
    assert (await snapshots.latest()).plain


async def test_hosts_and_switches_that_are_away_are_told(
    controller: Controller, loopback: httpx.AsyncClient
) -> None:
    network = controller.switches.network
    (port,) = [arc.tail_port for arc in network.arcs() if (arc.tail, arc.head) == ("S0", "T0")]
    await loopback.get("/v1/health")
    controller.loop.post(PortWentDown(network.datapath_id("S0"), port))
    names = [node["name"] for node in (await loopback.get("/v1/topology")).json()["nodes"]]
    states = dict(zip(names, (await loopback.get("/v1/live")).json()["nodes"], strict=True))
    assert {name for name, state in states.items() if state != "up"} == {"T0"}


async def test_every_node_has_a_place_on_the_map(tmp_path: Path) -> None:
    network = json.loads(topologies.load("butterfly").model_dump_json())
    for node in network["nodes"]:
        node["x"] = node["y"] = None
    topology = tmp_path / "placeless.json"
    topology.write_text(json.dumps(network))
    controller = Controller(str(topology))
    controller.start()
    async with serve(controller) as client:
        nodes = (await client.get("/v1/topology")).json()["nodes"]
        again = (await client.get("/v1/topology")).json()["nodes"]
    controller.loop.stop()
    assert nodes == again
    assert len({(node["x"], node["y"]) for node in nodes}) == len(nodes)
