"""REST over ASGI with the real core, loop and service layer; only the switches are fakes."""

import asyncio
import json
import re
import socket
import time
from typing import Any

import httpx
import pytest
import uvicorn

from controller.api.idempotency import IdempotencyStore
from controller.api.rest import make_app
from controller.api.rest_common import Api
from controller.api.schema import parse
from controller.api.service import Service
from controller.errors import Unavailable
from controller.model.events import PortWentDown
from controller.model.rules import TcpConnection
from controller.model.settings import Counters, Settings
from tests.fakes.openflow_table import Packet
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.served_controller import Controller
from tests.fakes.waiting import until

PROBLEM = {"type", "title", "status", "detail", "instance", "code", "field", "reason"}


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
    assert [listed["flow_id"] for listed in (await client.get("/v1/flows")).json()] == [flow["flow_id"]]

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
    assert (hosts[0]["name"], hosts[0]["addresses"], hosts[0]["switch"]) == (
        "T0",
        ["10.0.0.1", "fd00::1"],
        "S0",
    )
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
    assert body.keys() == PROBLEM
    assert answer.headers["content-type"] == "application/problem+json"
    assert (body["status"], body["code"], body["field"]) == (status, code, field)
    assert body["detail"] == f"{field}: {body['reason']}"


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


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "body: must be given: a JSON object"),
        (b"{", "body: must be JSON: Expecting property name enclosed in double quotes at character 1"),
        (b"[]", "body: must be an object with keys"),
        (b"null", "body: must be an object with keys"),
        (b'"x"', "body: must be an object with keys, not 'x'"),
    ],
)
async def test_a_body_that_is_no_request(client: httpx.AsyncClient, body: bytes, detail: str) -> None:
    answer = await client.post("/v1/flows", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json().keys() == PROBLEM
    assert answer.json()["detail"] == detail


async def test_a_missing_field_is_named(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/flows", json={"source": "T0"})
    assert (answer.status_code, answer.json()["field"]) == (422, "destination")
    assert answer.json()["reason"] == "must be given in the request's body"
    nested = await client.post("/v1/preview", json={"scale": [{"flow_id": "x"}]})
    assert nested.json()["detail"] == "scale[0].factor: must be given in the request's body"


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
        "/v1/preview",
        "/v1/configuration/reload",
        "/v1/topology",
        "/v1/links",
        "/v1/links/{link_id}",
        "/v1/hosts",
        "/v1/switches",
        "/v1/switches/{switch}",
        "/v1/switches/{switch}/rules",
        "/v1/health",
        "/v1/live",
        "/v1/events",
        "/v1/leader",
        "/v1/leader/step-down",
        "/v1/version",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    post = document["paths"]["/v1/flows"]["post"]
    assert post["description"]
    problem = post["responses"]["422"]["content"]["application/problem+json"]["schema"]["$ref"]
    assert problem == "#/components/schemas/Problem"
    assert set(document["components"]["schemas"]["Problem"]["properties"]) == PROBLEM
    assert "max_throughput_min_delay" in document["info"]["description"]
    assert "HTTPValidationError" not in str(document["paths"]), "refusals are described as they are"


async def test_the_documentation_needs_no_other_machine(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    assert page.status_code == 200
    assert not re.findall(r"(?:src|href)=[\"'](?:https?:)?//", page.text)
    for local in re.findall(r"(?:src|href)=[\"'](/[^\"']+)", page.text):
        assert (await client.get(local)).status_code == 200, local


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


async def test_pages_of_flows(client: httpx.AsyncClient) -> None:
    for number in range(7):
        body = REQUEST | {"destination_port": 6000 + number, "rate_bps": 1e5}
        await client.post("/v1/flows", json=body)
    await client.post("/v1/flows", json=REQUEST | {"source": "T1", "destination": "T3", "rate_bps": 1e5})
    path, ports = "/v1/flows?limit=3&source=T0", []
    while path:
        page = await client.get(path)
        assert page.headers["X-Total-Count"] == "7"
        ports += [flow["destination_port"] for flow in page.json()]
        path = page.links.get("next", {}).get("url", "")
    assert ports == list(range(6000, 6007))
    filters = {"destination=T3": 1, "source=10.0.0.1": 7, "through=S5-S3": 1, "through=S0": 7, "owner=me": 0}
    for query, count in filters.items():
        assert len((await client.get(f"/v1/flows?{query}")).json()) == count, query
    for wrong in ("limit=0", "limit=x", "cursor=x", "state=gone"):
        assert (await client.get(f"/v1/flows?{wrong}")).status_code == 422


async def test_a_change_of_what_has_changed_meanwhile_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/flows", json=REQUEST)
    where, tag = answer.headers["Location"], answer.headers["ETag"]
    changed = await client.patch(where, json={"rate_bps": 2e6}, headers={"If-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag
    for stale in (tag, f"W/{changed.headers['ETag']}", '"x"', "nonsense"):
        late = await client.patch(where, json={"rate_bps": 3e6}, headers={"If-Match": stale})
        assert (late.status_code, late.json()["code"]) == (412, "PRECONDITION_FAILED")
        assert (await client.delete(where, headers={"If-Match": stale})).status_code == 412
    assert (await client.get(where)).json()["requested_bps"] == 2e6
    both = f'"77", {changed.headers["ETag"]}'
    assert (await client.delete(where, headers={"If-Match": both})).status_code == 204


async def test_a_request_sent_twice_with_a_key_is_done_once(client: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "once"}
    asked = [client.post("/v1/flows", json=REQUEST, headers=headers) for _ in range(4)]
    answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 3
    assert len((await client.get("/v1/flows")).json()) == 1
    other = await client.post("/v1/flows", json=REQUEST | {"rate_bps": 1e6}, headers=headers)
    assert (other.status_code, other.json()["field"]) == (422, "Idempotency-Key")
    refused = [
        await client.post("/v1/flows", json=REQUEST | {"streams": 9}, headers={"Idempotency-Key": "no"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in refused] == [409, 409]


async def test_the_store_of_keys_is_bounded_and_forgets() -> None:
    now = 0.0
    store = IdempotencyStore[int](capacity=10, age_s=60, clock=lambda: now)
    calls = 0

    async def make() -> int:
        nonlocal calls
        calls += 1
        return calls

    for number in range(100):
        await store.answer("me", str(number), "digest", make)
    assert len(store._entries) == 10
    assert await store.answer("me", "99", "digest", make) == (100, True)
    assert await store.answer("you", "99", "digest", make) == (101, False), "each client has its own keys"
    now = 61.0
    assert await store.answer("me", "99", "other", make) == (102, False)


async def test_a_request_has_the_time_that_its_client_gives(
    client: httpx.AsyncClient, controller: Controller
) -> None:
    await client.get("/v1/health")
    controller.core._state.settings = Settings(confirm_timeout_s=60)
    controller.silent = True
    answer = await client.post("/v1/flows", json=REQUEST, headers={"Request-Timeout": "0.1"})
    assert (answer.status_code, answer.json()["code"]) == (504, "DEADLINE_EXCEEDED")
    await until(lambda: not len(controller.core._state.flows))
    wrong = await client.post("/v1/flows", json=REQUEST, headers={"Request-Timeout": "-1"})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "Request-Timeout")


async def test_the_flow_of_a_client_that_goes_away_is_undone(controller: Controller) -> None:
    """Over a real connection: the client closes it before the switches have confirmed."""
    controller.service.bind(asyncio.get_running_loop())
    controller.core._state.settings = Settings(confirm_timeout_s=60)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(make_app(controller.service), log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await until(lambda: server.started)
    controller.silent = True
    _, writer = await asyncio.open_connection(*listener.getsockname())
    body = json.dumps(REQUEST).encode()
    lines = ("POST /v1/flows HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", ""))
    writer.write(head.encode() + body)
    await until(lambda: len(controller.core._state.flows) == 1)
    writer.close()
    await until(lambda: not len(controller.core._state.flows))
    controller.silent = False
    server.should_exit = True
    await serving


async def protected(controller: Controller) -> None:
    """Wait until each of the butterfly's 14 ports towards switches has a bypass: they come last."""

    def with_bypass() -> int:
        groups = [group for table in controller.switches.tables.values() for group in table.groups.values()]
        return sum(len(group.buckets) == 2 for group in groups if group.is_failover)

    await until(lambda: with_bypass() == 14)


async def test_switches_and_their_rules(client: httpx.AsyncClient, controller: Controller) -> None:
    await client.get("/v1/health")
    await protected(controller)
    flow = (await client.post("/v1/flows", json=REQUEST)).json()
    switches = {switch["name"]: switch for switch in (await client.get("/v1/switches")).json()}
    assert set(switches) == {f"S{number}" for number in range(6)}
    for name, switch in switches.items():
        table = controller.switches.tables[switch["datapath_id"]]
        rules = (await client.get(f"/v1/switches/{name}/rules")).json()
        assert switch["rules"] == len(rules["rules"]) == len(table.rules)
        assert {group["number"] for group in rules["groups"]} == set(table.groups)
        assert {rule["cookie"] for rule in rules["rules"]} == {f"{r.cookie:#x}" for r in table.rules.values()}
        of_flows = [rule for rule in rules["rules"] if rule["purpose"] == "flow"]
        assert {rule["flow_id"] for rule in of_flows} <= {flow["flow_id"]}
        assert len(of_flows) == (len(flow["streams"]) if name in ("S0", "S4") else 0)
        assert (await client.get(f"/v1/switches/{name}")).json() == switch
    assert switches["S0"]["state"] == "connected"
    assert {port["neighbour"] for port in switches["S0"]["ports"]} == {"T0", "S2", "S4"}
    for path in ("/v1/switches/S9", "/v1/switches/S9/rules", "/v1/links/S0-S9"):
        assert (await client.get(path)).status_code == 404
    assert [link["link"] for link in (await client.get("/v1/links/S4-S0")).json()] == ["S0->S4", "S4->S0"]


async def test_for_those_who_operate_it(client: httpx.AsyncClient, controller: Controller) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/readyz")).json() == {"ready": True, "reason": ""}
    assert (await client.get("/v1/version")).json()["name"] == "mstcp-controller"
    await client.post("/v1/flows", json=REQUEST)
    await protected(controller)
    await client.get("/v1/nothing")
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    figures = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in answer.text.splitlines()
        if not line.startswith("#")
    }
    assert figures["mstcp_flows"] == 1
    assert figures["mstcp_request_to_installed_seconds_count"] == 1
    assert figures['mstcp_events_total{kind="flow_granted"}'] == 1
    assert figures['mstcp_http_answers_total{method="any",route="none",status="404"}'] == 1
    assert figures['mstcp_http_answers_total{method="POST",route="/v1/flows",status="201"}'] == 1
    assert figures['mstcp_switch_rules{switch="S0"}'] == len(controller.switches.tables[1].rules)
    assert figures["process_resident_memory_bytes"] > 0
    controller.loop.post(PortWentDown(5, 1))
    unready = await client.get("/readyz")
    assert (unready.status_code, unready.json()["ready"]) == (503, False)


async def test_a_body_that_is_too_large(client: httpx.AsyncClient) -> None:
    body = json.dumps(REQUEST | {"source": "x" * (1 << 20)})
    answer = await client.post("/v1/flows", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["field"]) == (413, "body")


async def test_a_link_is_changed_while_it_carries_a_flow(client: httpx.AsyncClient) -> None:
    await client.get("/v1/health")
    await client.post("/v1/flows", json=REQUEST)
    tag = (await client.get("/v1/links/S0-S4")).headers["ETag"]
    changed = await client.patch("/v1/links/S0-S4", json={"rate_bps": 2e6}, headers={"If-Match": tag})
    assert [link["capacity_bps"] for link in changed.json()] == [2e6, 2e6]
    assert (await client.get("/v1/flows")).json()[0]["rate_bps"] < 7e6
    late = await client.patch("/v1/links/S0-S4", json={"rate_bps": 3e6}, headers={"If-Match": tag})
    assert late.status_code == 412
    for wrong in ({"rate_bps": 0}, {"delay_s": -1}, {"enabled": "no"}, {"colour": "red"}):
        assert (await client.patch("/v1/links/S0-S4", json=wrong)).status_code == 422
    assert (await client.patch("/v1/links/S0-S9", json={})).status_code == 404


async def test_what_switches_have_counted_is_shown() -> None:
    running = Controller(counters=Counters(interval_s=0.02))
    running.start()
    running.service.bind(asyncio.get_running_loop())
    transport = httpx.ASGITransport(make_app(Api(running.service, longest_stream_s=0.05)))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://controller") as client:
            await client.get("/v1/health")
            flow = (await client.post("/v1/flows", json=REQUEST)).json()
            ends = flow["source_ip"], flow["destination_ip"], flow["streams"][0]["source_port"], 5001
            packet, path = Packet.tcp(TcpConnection(*ends)), flow["streams"][0]["path"]
            deadline = time.monotonic() + 20
            first = None
            while not first:
                assert time.monotonic() < deadline
                running.switches.carry(packet, "T0", 590)
                await asyncio.sleep(0.005)
                (shown,) = (await client.get("/v1/flows")).json()
                first = shown["streams"][0]["measured_bps"]
            links = {link["link"]: link for link in (await client.get("/v1/links")).json()}
            link = links[f"{path[0]}->{path[1]}"]
            assert link["measured_utilisation"] == pytest.approx(link["measured_bps"] / link["capacity_bps"])
            assert shown["measured_bps"] == pytest.approx(sum(s["measured_bps"] for s in shown["streams"]))
            assert shown["streams"][0]["wire_bps"] > shown["streams"][0]["rate_bps"]
            switch = (await client.get("/v1/switches/S0")).json()
            (towards_host,) = (port for port in switch["ports"] if port["neighbour"] == "T0")
            assert towards_host["counters"]["received_bytes"] >= 590
            assert 'mstcp_link_measured_bps{link="S0->S2"}' in (await client.get("/metrics")).text
    finally:
        running.loop.stop()
