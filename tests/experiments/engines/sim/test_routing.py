"""Paths of simulated flows: the controller's own, as flows ask for them in the order of the file."""

from __future__ import annotations

from typing import Any

import pytest

import topologies
from controller.decide.offline import OfflineController
from controller.errors import InvalidRequest
from controller.model.requests import FlowRequest
from controller.wire import Framing
from experiments.engines.dual_homing import with_second_interfaces
from experiments.engines.sim.routing import Routing, routes
from experiments.model import scenario
from experiments.model.plan import RunPlan
from tests.experiments.engines.sim.sim_plans import plan_of

P1 = ["T0", "S0", "S4", "T2"]
P2 = ["T0", "S0", "S2", "S3", "S4", "T2"]
Q1 = ["T1", "S1", "S5", "T3"]
Q2 = ["T1", "S1", "S2", "S3", "S5", "T3"]


def rates_of(plan: RunPlan, flow: str) -> dict[tuple[str, ...], float | None]:
    return {tuple(path.path): path.rate_bps for path in routes(plan)[flow].allocated}


@pytest.mark.parametrize("protocol", ["mstcp", "ppfs"])
@pytest.mark.parametrize("case", ["1", "2"])
def test_the_computed_allocation_is_the_papers(protocol: str, case: str) -> None:
    computed, given = plan_of(protocol, case), plan_of(protocol, case, allocation="paper")
    for flow in ("1", "2"):
        assert rates_of(computed, flow) == pytest.approx(rates_of(given, flow), rel=2e-3)


def test_ospf_takes_the_path_of_least_delay_in_both_directions() -> None:
    routed = routes(plan_of("ospf"))
    assert [path.path for path in routed["2"].allocated] == [Q2]
    assert routed["2"].allocated[0].rate_bps is None
    assert routed["2"].acks == tuple(reversed(Q2))


def test_ecmp_hashes_over_equal_paths_alike_for_a_seed() -> None:
    taken = set()
    for seed in range(40):
        # S1-S5 with 3 ms is as short as the way by S2 and S3.
        plan = plan_of("ecmp", seed=seed)
        network = topologies.load("butterfly", overrides={"links.S1-S5.delay_us": 3000})
        plan = plan.model_copy(update={"network": network})
        route = routes(plan)["2"]
        assert route == routes(plan)["2"]
        taken.add(tuple(route.allocated[0].path))
    assert taken == {tuple(Q1), tuple(Q2)}


def test_acknowledgements_go_where_they_are_told() -> None:
    shortest = tuple(reversed(P1))
    assert routes(plan_of("ppfs"))["1"].acks == shortest
    assert routes(plan_of("ppfs", ppfs__ack_path="reverse:1"))["1"].acks == tuple(reversed(P2))
    assert routes(plan_of("ppfs", ppfs__ack_path="split"))["1"].acks == "split"
    assert routes(plan_of("mstcp"))["1"].acks is None
    with pytest.raises(InvalidRequest, match="reverse:0 to reverse:1"):
        routes(plan_of("ppfs", ppfs__ack_path="reverse:7"))


def test_a_flow_that_finds_the_network_full_gets_nothing() -> None:
    network = topologies.load("line:2")
    controller = OfflineController(network)
    a, b = network.hosts
    capacity = min(link.rate_bps for link in network.links)
    asked: dict[str, Any] = {"source": a, "destination": b, "rate_bps": 2 * capacity, "max_paths": 1}
    wanted = {name: FlowRequest(destination_port=port, **asked) for port, name in enumerate(("x", "y"), 1)}
    for _ in range(2):  # nothing is left of the flows of the time before
        allocated = controller.allocate(wanted)
        assert allocated["y"] == ()
        (path,) = allocated["x"]
        assert path.rate_bps == pytest.approx(Framing().goodput_bps(capacity, 1), rel=1e-6)


def test_flows_that_ask_later_keep_the_paths_of_those_before_and_share_their_rates() -> None:
    # The middle link is worth as much to either flow of the butterfly: the one that has it keeps it.
    routed = routes(plan_of("mptcp-sdn"))
    rates = {name: [path.rate_bps or 0.0 for path in route.allocated] for name, route in routed.items()}
    assert rates["1"] == pytest.approx([4.305e6, 4.305e6], rel=1e-3)
    assert sorted(rates["2"]) == pytest.approx([4.305e6, 25.83e6], rel=1e-3)


def test_all_links_of_a_network_are_up() -> None:
    for spec in ("butterfly", "fat-tree:4", "ring:6"):
        routing = Routing(topologies.load(spec))
        assert not routing.controller._state.live.links_down()
        assert not routing.controller._state.live.faults()


def test_every_built_in_scenario_can_be_routed() -> None:
    for name in scenario.available():
        loaded = scenario.load(name)
        if any(case.demands for case in loaded.cases.values()):
            continue
        network = topologies.load(loaded.network, variant=loaded.variant)
        for case in loaded.cases:
            plan = RunPlan(
                scenario=loaded, network=network, case_name=case, protocol="mstcp", seed=1, duration_s=1
            )
            plan, _ = with_second_interfaces(plan)
            assert routes(plan).keys() == loaded.case(case).flows.keys()
