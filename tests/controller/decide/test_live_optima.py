"""Optima kept from event to event against solves from scratch."""

from __future__ import annotations

import pytest
from gomr import OBJECTIVES, Demand, Engine
from gomr.errors import SolverError
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from controller.decide.live_optima import LiveOptima
from controller.state.live_network import LiveNetwork

NETWORK = topologies.load("butterfly")
FLOWS = st.tuples(st.permutations(NETWORK.hosts), st.floats(1e5, 5e7))


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_change_leads_to_the_optimum(objective: str, data: st.DataObject) -> None:
    live = LiveNetwork(NETWORK)
    optima = LiveOptima(live)
    for _ in range(4):
        wanted = data.draw(st.dictionaries(st.sampled_from("abcd"), FLOWS))
        demands = [
            Demand(id_, hosts[0], hosts[1], rate_bps, ack_ratio=0.0458)
            for id_, (hosts, rate_bps) in wanted.items()
        ]
        lost = data.draw(st.sets(st.sampled_from(sorted(live.arcs)), max_size=3))
        free = {name: arc.rate_bps for name, arc in live.arcs.items() if name not in lost}
        allocation = optima.solve(objective, demands, free)
        from_scratch = LiveOptima(live).solve(objective, demands, free)
        assert allocation.value_bps == pytest.approx(from_scratch.value_bps, rel=1e-9, abs=1e-3)
        assert allocation.max_violation_bps <= 1.0
        assert all(
            edge not in lost for paths in allocation.paths.values() for path in paths for edge in path.edges
        )


def test_an_optimum_that_fails_is_found_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    live = LiveNetwork(NETWORK)
    optima = LiveOptima(live)
    free = {name: arc.rate_bps for name, arc in live.arcs.items()}
    optima.solve("fair", [Demand("a", "T0", "T2", 1e6)], free)

    def fails(*_: object) -> None:
        raise SolverError("native", "stalled", {})

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "become", fails)
        allocation = optima.solve("fair", [Demand("b", "T1", "T3", 2e6)], free)
    assert allocation.rate_bps("b") == pytest.approx(2e6)
    assert optima.solve("fair", [Demand("b", "T1", "T3", 3e6)], free).rate_bps("b") == pytest.approx(3e6)
