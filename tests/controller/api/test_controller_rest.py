"""REST over ASGI with the real core, loop and service layer; only the switches are fakes."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

import topologies
from controller.api.rest import make_app
from controller.api.schema import parse
from controller.api.service import Service
from controller.core.core import Core
from controller.core.events import PortWentDown
from controller.core.messages import DatapathMessage
from controller.core.state import Settings
from controller.errors import Unavailable
from controller.loop import ControllerLoop
from tests.fakes.openflow_table import FakeSwitches

REQUEST: dict[str, Any] = {
    "source": "T0",
    "destination": "T2",
    "destination_port": 5001,
    "rate_bps": 8.5e6,
    "packet_bytes": 590,
}


class Controller:
    """Everything but os-ken and sockets. `silent`: the switches confirm nothing."""

    def __init__(self) -> None:
        network = topologies.load("butterfly")
        self.silent = False
        self.switches = FakeSwitches(network)
        self.core = Core(network, Settings(confirm_timeout_s=0.05))
        self.loop = ControllerLoop(self.core, self.send, lambda message: self.service.deliver(message))
        self.service = Service(self.loop.post)

    def send(self, message: DatapathMessage) -> None:
        barrier = self.switches.carry_out(message)
        if barrier is not None and not self.silent:
            self.loop.post(barrier)

    def start(self) -> None:
        self.loop.start()
        for event in self.switches.arrivals():
            self.loop.post(event)


@pytest.fixture
def controller() -> Iterator[Controller]:
    running = Controller()
    running.start()
    yield running
    running.loop.stop()


@pytest.fixture
async def client(controller: Controller) -> AsyncIterator[httpx.AsyncClient]:
    controller.service.bind(asyncio.get_running_loop())
    transport = httpx.ASGITransport(make_app(controller.service))
    async with httpx.AsyncClient(transport=transport, base_url="http://controller") as connected:
        yield connected


async def test_the_life_of_a_flow(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/flows", json=REQUEST)
    assert answer.status_code == 201
    flow = answer.json()
    where = answer.headers["Location"]
    assert where == f"/v1/flows/{flow['flow_id']}"
    assert flow["rate_bps"] == 8.5e6
    assert [stream["path"] for stream in flow["streams"]] == [
        ["T0", "S0", "S4", "T2"],
        ["T0", "S0", "S2", "S3", "S4", "T2"],
    ]
    assert [found["flow_id"] for found in (await client.get("/v1/flows")).json()] == [flow["flow_id"]]

    changed = await client.patch(where, json={"rate_bps": 2e6})
    assert changed.status_code == 200
    assert changed.json()["rate_bps"] == 2e6
    assert (await client.get(where)).json()["requested_bps"] == 2e6

    assert (await client.post(f"{where}/renew")).json()["expires_in_s"] == pytest.approx(30, abs=5)
    assert (await client.delete(where)).status_code == 204
    assert (await client.delete(where)).status_code == 204, "releasing twice is no error"
    assert (await client.get(where)).status_code == 404
    assert (await client.get("/v1/flows")).json() == []


async def test_what_the_network_is(client: httpx.AsyncClient) -> None:
    await client.post("/v1/flows", json=REQUEST)
    health = (await client.get("/v1/health")).json()
    assert health["status"] == "ok"
    assert health["ready"] is True
    links = {link["link"]: link for link in (await client.get("/v1/links")).json()}
    assert len(links) == 22
    assert links["S0->S4"]["allocated_bps"] == pytest.approx(5e6)
    assert links["S0->S4"]["free_bps"] == pytest.approx(0, abs=1)
    hosts = (await client.get("/v1/hosts")).json()
    assert (hosts[0]["name"], hosts[0]["ip"], hosts[0]["switch"]) == ("T0", "10.0.0.1", "S0")
    topology = (await client.get("/v1/topology")).json()
    assert topology["name"] == "butterfly"
    assert {node["kind"] for node in topology["nodes"]} == {"host", "switch"}


@pytest.mark.parametrize(
    ("fields", "status", "code", "field"),
    [
        ({"source": "T9"}, 404, "NOT_FOUND", "source"),
        ({"destination": "T9"}, 404, "NOT_FOUND", "destination"),
        ({"rate_bps": -8.5e6}, 422, "INVALID", "rate_bps"),
        ({"rate_bps": "fast"}, 422, "INVALID", "rate_bps"),
        ({"rate_bps": 1e99}, 422, "INVALID", "rate_bps"),
        ({"destination_port": 70000}, 422, "INVALID", "destination_port"),
        ({"destination_port": True}, 422, "INVALID", "destination_port"),
        ({"source_ports": [40000, "x"]}, 422, "INVALID", "source_ports[1]"),
        ({"source_ports": []}, 422, "INVALID", "source_ports"),
        ({"objective": "best"}, 422, "INVALID", "objective"),
        ({"colour": "red"}, 422, "INVALID", "colour"),
        ({"streams": 9}, 409, "INFEASIBLE", "streams"),
        ({"paths": [{"nodes": ["T0", "S0", "S4", "T2"], "rate_bps": 8.5e6}]}, 409, "CONFLICT", "paths"),
    ],
)
async def test_every_refusal_has_the_same_shape(
    client: httpx.AsyncClient, fields: dict[str, Any], status: int, code: str, field: str
) -> None:
    answer = await client.post("/v1/flows", json=REQUEST | fields)
    assert answer.status_code == status
    body = answer.json()
    assert body.keys() == {"code", "field", "reason"}
    assert (body["code"], body["field"]) == (code, field)
    assert body["reason"]


@pytest.mark.parametrize("rate", ["NaN", "Infinity", "-Infinity", "1e999", "-1", "0", "null", '""'])
async def test_a_rate_that_is_no_rate_is_refused_by_name(client: httpx.AsyncClient, rate: str) -> None:
    # JSON knows no NaN, but Python's parsers do.
    body = json.dumps(REQUEST | {"rate_bps": "RATE"}).replace('"RATE"', rate)
    headers = {"Content-Type": "application/json"}
    answer = await client.post("/v1/flows", content=body, headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (422, "rate_bps")
    where = (await client.post("/v1/flows", json=REQUEST)).headers["Location"]
    changed = await client.patch(where, content=f'{{"rate_bps": {rate}}}', headers=headers)
    assert (changed.status_code, changed.json()["field"]) == (422, "rate_bps")
    assert (await client.get(where)).json()["requested_bps"] == REQUEST["rate_bps"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"'])
async def test_a_body_that_is_no_request(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/v1/flows", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json().keys() == {"code", "field", "reason"}


async def test_a_missing_field_is_named(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/flows", json={"source": "T0"})
    assert (answer.status_code, answer.json()["field"]) == (422, "destination")


async def test_a_port_in_use_and_an_unreachable_host(
    client: httpx.AsyncClient, controller: Controller
) -> None:
    fields = REQUEST | {"source_ports": [40001, 40002], "rate_bps": 1e6}
    assert (await client.post("/v1/flows", json=fields)).status_code == 201
    again = await client.post("/v1/flows", json=fields)
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")
    controller.loop.post(PortWentDown(5, 1))
    cut = await client.post("/v1/flows", json=REQUEST)
    assert (cut.status_code, cut.json()["code"], cut.json()["field"]) == (409, "INFEASIBLE", "destination")


async def test_a_silent_switch_is_unavailable(client: httpx.AsyncClient, controller: Controller) -> None:
    await client.get("/v1/health")  # the switches have their routes
    controller.silent = True
    answer = await client.post("/v1/flows", json=REQUEST)
    assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
    assert (await client.get("/v1/flows")).json() == []


async def test_unknown_paths_and_flows(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/nothing")).json()["code"] == "NOT_FOUND"
    assert (await client.put("/v1/flows")).status_code == 405
    for answer in (
        await client.get("/v1/flows/x-1"),
        await client.delete("/v1/flows/x-1"),
        await client.patch("/v1/flows/x-1", json={"rate_bps": 1e6}),
        await client.post("/v1/flows/x-1/renew"),
    ):
        assert answer.status_code == 404
        assert answer.json()["field"] == "flow_id"


async def test_openapi_describes_everything(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    assert set(document["paths"]) == {
        "/v1/flows",
        "/v1/flows/{flow_id}",
        "/v1/flows/{flow_id}/renew",
        "/v1/topology",
        "/v1/links",
        "/v1/hosts",
        "/v1/health",
    }
    post = document["paths"]["/v1/flows"]["post"]
    assert post["description"]
    assert post["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith("ErrorBody")
    assert "max_throughput_min_delay" in document["info"]["description"]
    assert "HTTPValidationError" not in str(document["paths"]), "refusals are described as they are"
    assert (await client.get("/docs")).status_code == 200


async def test_many_clients_at_once(client: httpx.AsyncClient) -> None:
    fields = [REQUEST | {"destination_port": 6000 + i, "rate_bps": 1e5} for i in range(20)]
    answers = await asyncio.gather(*(client.post("/v1/flows", json=body) for body in fields))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["flow_id"] for answer in answers}) == 20


async def test_those_who_wait_hear_that_the_controller_stops(
    client: httpx.AsyncClient, controller: Controller
) -> None:
    await client.get("/v1/health")
    controller.silent = True
    waiting = asyncio.create_task(client.post("/v1/flows", json=REQUEST))
    await asyncio.sleep(0)
    while not controller.service.waiting:
        await asyncio.sleep(0.001)
    controller.service.close()
    answer = await waiting
    assert (answer.status_code, answer.json()["reason"]) == (503, "the controller is stopping")


async def test_a_split_flow(client: httpx.AsyncClient) -> None:
    request = REQUEST | {"splitting": "packets", "source_ports": [40001], "ack_path": "reverse:1"}
    answer = await client.post("/v1/flows", json=request)
    assert answer.status_code == 201
    flow = answer.json()
    assert [stream["source_port"] for stream in flow["streams"]] == [40001, 40001]
    split = flow["split"]
    assert split.pop("shares") == pytest.approx([stream["rate_bps"] / 8.5e6 for stream in flow["streams"]])
    assert split == {
        "ingress": {"switch": "S0", "port": 1},
        "source_ip": "10.0.0.1",
        "destination_ip": "10.0.0.3",
        "source_port": 40001,
        "destination_port": 5001,
        "stamps": ["0a:50:50:00:01:00", "0a:50:50:00:01:01"],
        "acks": "reverse:1",
        "ack_path": ["T2", "S4", "S3", "S2", "S0", "T0"],
    }
    where = answer.headers["Location"]
    assert (await client.get(where)).json()["split"]["stamps"] == split["stamps"]
    changed = (await client.patch(where, json={"rate_bps": 20e6})).json()
    assert changed["split"]["shares"] == pytest.approx([0.5, 0.5], abs=0.05)
    assert changed["split"]["stamps"] == split["stamps"]
    assert (await client.delete(where)).status_code == 204


async def test_a_split_flow_with_two_ports_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/flows", json=REQUEST | {"splitting": "group", "source_ports": [1, 2]})
    assert answer.status_code == 422
    assert answer.json()["field"] == "source_ports"


async def test_a_request_that_takes_too_long_is_undone(controller: Controller) -> None:
    service = Service(controller.loop.post, timeout_s=0.2)
    controller.service = service
    service.bind(asyncio.get_running_loop())
    controller.silent = True
    controller.core._state.settings = Settings(confirm_timeout_s=60)
    with pytest.raises(Unavailable, match="did not answer within"):
        await service.request(parse(REQUEST))
    for _ in range(1000):
        if not len(controller.core._state.flows):
            break
        await asyncio.sleep(0.01)
    assert len(controller.core._state.flows) == 0
