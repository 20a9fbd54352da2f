"""What would happen if: the same as what then happens, and nothing is touched by asking."""

from itertools import pairwise
from typing import Any

import httpx
import pytest
from gomr import Demand, Edge, Problem
from gomr.solving import allocate

import topologies
from controller.decide.preview import preview
from controller.model.events import CopyRequested
from controller.model.requests import FailedElements, FlowRequest, PreviewRequest, ScaledDemands
from controller.model.settings import Settings
from controller.model.state_copy import StateCopy
from controller.state.live_network import arc_name
from tests.fakes.openflow_table import ControlledNetwork
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.served_controller import Controller

OTHER = REQUEST | {"source": "T1", "destination": "T3", "rate_bps": 31.32e6}


def controlled(topology: str = "butterfly") -> ControlledNetwork:
    return ControlledNetwork.brought_up(topologies.load(topology), Settings(lease_s=1e6))


def copy_state(net: ControlledNetwork) -> StateCopy:
    (answer,) = net.handle(CopyRequested(1))
    assert isinstance(answer.result, StateCopy)
    return answer.result


def rates(net: ControlledNetwork) -> dict[str, list[tuple[tuple[str, ...], float]]]:
    return {flow.flow_id: [(s.path, s.rate_bps) for s in flow.streams] for flow in net.snapshot().flows}


def request(**fields: Any) -> FlowRequest:
    return FlowRequest(**REQUEST | fields)


def test_what_a_flow_would_be_given_is_what_it_is_given() -> None:
    net = controlled()
    before = net.request(**OTHER)
    expected = preview(copy_state(net), PreviewRequest(add=(request(),)))
    granted = net.request(**REQUEST)
    (added,) = expected.added
    assert added.granted
    assert [(p.path, p.rate_bps) for p in added.paths] == [(s.path, s.rate_bps) for s in granted.streams]
    (moved,) = expected.flows
    assert (moved.flow_id, moved.outcome) == (before.flow_id, "rate_changed")
    assert [(p.path, p.rate_bps) for p in moved.paths_after] == rates(net)[before.flow_id]
    after = {link.link: link.allocated_bps for link in net.snapshot().links}
    for link in expected.links:
        assert link.allocated_after_bps == pytest.approx(after[link.link], abs=1)
        assert link.utilisation_after == pytest.approx(after[link.link] / link.capacity_bps)


def test_what_would_be_refused_says_why_and_the_next_is_tried_beside_it() -> None:
    net = controlled()
    answer = preview(
        copy_state(net), PreviewRequest(add=(request(streams=9), request(destination="T9"), request()))
    )
    assert [flow.granted for flow in answer.added] == [False, False, True]
    assert [flow.refusal.field for flow in answer.added if flow.refusal] == ["streams", "destination"]
    assert (answer.summary.admitted, answer.summary.refused) == (1, 2)


@pytest.mark.parametrize("link", ["S2-S3", "S4-S0", "S1-S5"])
def test_what_a_failure_would_do_is_what_it_does(link: str) -> None:
    net = controlled()
    net.request(**REQUEST)
    net.request(**OTHER)
    expected = preview(copy_state(net), PreviewRequest(fail=FailedElements(links=(link,))))
    net.switches.silent_arcs = frozenset({link.replace("-", "->"), "->".join(link.split("-")[::-1])})
    before = rates(net)
    for _ in range(20):
        net.pass_time(0.05)  # the silence is noticed, and at once all is planned again
        if rates(net) != before:
            break
    after = rates(net)
    assert {flow.flow_id for flow in expected.flows} == {
        name for name in after if after[name] != before[name]
    }
    for flow in expected.flows:
        assert [path for path, _ in after[flow.flow_id]] == [path.path for path in flow.paths_after]
        expected_bps = [path.rate_bps for path in flow.paths_after]
        assert [rate_bps for _, rate_bps in after[flow.flow_id]] == pytest.approx(expected_bps, abs=1)


def test_a_failure_on_a_larger_network_is_the_optimum_that_the_solver_finds() -> None:
    net = controlled("waxman:8:seed=3")
    hosts = net.switches.network.hosts
    for number, (one, other) in enumerate(zip(hosts[:5], hosts[3:], strict=False)):
        net.request(
            source=one, destination=other, destination_port=5000 + number, rate_bps=9e6, objective="fair"
        )
    link = next(link.name for link in net.switches.network.links if not set(link.ends) & set(hosts))
    answer = preview(copy_state(net), PreviewRequest(fail=FailedElements(links=(link,))))
    kept = {flow.flow_id: flow for flow in net.snapshot().flows}
    lost = {flow for flow, view in kept.items() if any(_uses(stream.path, link) for stream in view.streams)}
    assert lost
    state = net.core._state
    demands = tuple(
        Demand(
            flow.id,
            flow.source.name,
            flow.destination.name,
            flow.framing.wire_bps(flow.requested_bps, flow.connection_count),
            fixed_paths=None if flow.id in lost else tuple(dict.fromkeys(flow.arcs)),
            max_paths=len(flow.streams) if flow.id in lost else None,
            ack_ratio=state.settings.ack_ratio,
        )
        for flow in state.flows
    )
    edges = tuple(
        Edge(name, arc.tail, arc.head, 0.0 if arc.link == link else arc.rate_bps, arc.delay_s)
        for name, arc in state.live.arcs.items()
    )
    reverse = {edge.id: arc_name(edge.head, edge.tail) for edge in edges}
    solved = allocate(Problem(edges, demands, reverse, frozenset(hosts)), "fair")
    after = {flow.flow_id: flow.rate_after_bps for flow in answer.flows}
    for name, view in kept.items():
        flow = state.flows.get(name)
        assert flow is not None
        wire_bps = sum(path.rate_bps for path in solved.paths[name])
        goodput_bps = flow.framing.goodput_bps(wire_bps, flow.connection_count)
        assert after.get(name, view.rate_bps) == pytest.approx(min(goodput_bps, 9e6), rel=2e-3)


def _uses(path: tuple[str, ...], link: str) -> bool:
    return any({a, b} == set(link.split("-")) for a, b in pairwise(path))


def test_demands_that_grow() -> None:
    net = controlled()
    flow = net.request(**REQUEST | {"rate_bps": 2e6})
    grown = preview(copy_state(net), PreviewRequest(scale=(ScaledDemands(factor=2.0),)))
    assert grown.flows[0].requested_bps == 4e6
    assert grown.flows[0].rate_after_bps == pytest.approx(net.change(flow.flow_id, 4e6).rate_bps)


def test_nothing_is_touched_by_asking(controller: Controller) -> None:
    net = controlled()
    net.request(**OTHER)
    before, tables = net.snapshot(), {name: dict(table.rules) for name, table in net.switches.tables.items()}
    failure = FailedElements(links=("S2-S3",), switches=("S1",))
    answer = preview(
        copy_state(net), PreviewRequest(fail=failure, scale=(ScaledDemands(factor=3.0),), add=(request(),))
    )
    assert answer.summary.lost == 1
    assert net.snapshot() == before
    assert {name: table.rules for name, table in net.switches.tables.items()} == tables


async def test_preview_over_rest(client: httpx.AsyncClient) -> None:
    await client.get("/v1/health")
    where = (await client.post("/v1/flows", json=REQUEST)).headers["Location"]
    answer = await client.post("/v1/preview", json={"fail": {"links": ["S4-S3"]}})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["summary"]["flows"], body["summary"]["lost"]) == (1, 0)
    (flow,) = body["flows"]
    assert flow["rate_after_bps"] < flow["rate_before_bps"]
    assert {link["link"] for link in body["links"] if not link["up"]} == {"S3->S4", "S4->S3"}
    assert (await client.get(where)).json()["rate_bps"] == 8.5e6
    for unknown in (
        {"fail": {"links": ["S2-S9"]}},
        {"fail": {"switches": ["S9"]}},
        {"scale": [{"flow_id": "nothing", "factor": 2.0}]},
    ):
        refused = await client.post("/v1/preview", json=unknown)
        assert (refused.status_code, refused.json()["code"]) == (404, "NOT_FOUND")
