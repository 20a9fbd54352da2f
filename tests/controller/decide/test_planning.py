"""The optimum without a solve is the optimum."""

from __future__ import annotations

import random
from typing import Any

import pytest

import topologies
from controller.decide import granting
from controller.decide.live_optima import LiveOptima
from controller.decide.planning import NewFlow, Optimum, on_a_free_path, optimise, optimise_new_flows
from controller.errors import RequestError
from controller.model.settings import Settings
from controller.state.state import State
from controller.wire import Framing
from tests.fakes.openflow_table import ControlledNetwork


def totals(state: State, optimum: Optimum) -> tuple[float, float]:
    """Return goodput, and goodput times delay, of all flows once the new one is there."""
    shares = [(path.rate_bps, path.delay_s) for path in optimum.paths]
    for flow in state.flows:
        rates = optimum.rates.get(flow.id, tuple(stream.rate_bps for stream in flow.streams))
        shares += [(rate_bps, s.delay_s) for rate_bps, s in zip(rates, flow.streams, strict=True)]
    return sum(rate for rate, _ in shares), sum(rate * delay_s for rate, delay_s in shares)


@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "fair", "max_min"])
@pytest.mark.parametrize("seed", range(6))
def test_a_flow_that_fits_on_its_shortest_path_needs_no_solve(
    seed: int, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    network = topologies.load(draw.choice(["butterfly", "fat-tree:4:rate_bps=10e6", "waxman:8:seed=3"]))
    net = ControlledNetwork.brought_up(network, Settings(ack_ratio=0.05))
    compared = 0

    def checked(state: State, objective: str, new_flow: NewFlow) -> Optimum | None:
        nonlocal compared
        quick = on_a_free_path(state, objective, new_flow)
        if quick is not None:
            compared += 1
            solved = optimise(state, LiveOptima(state.live), objective, new_flow)
            # A flow over one path leaves the room of the identifiers it was planned with: at most 8 of 1460.
            assert totals(state, quick) == pytest.approx(totals(state, solved), rel=1e-3)
        return quick

    monkeypatch.setattr(granting, "on_a_free_path", checked)
    for number in range(25):
        source, destination = draw.sample(network.hosts, 2)
        request: dict[str, Any] = {
            "source": source,
            "destination": destination,
            "destination_port": 1 + number,
            "rate_bps": draw.choice([2e5, 1e6, 3e6]),
            "max_paths": draw.choice([None, 1, 2]),
            "objective": objective,
        }
        try:
            net.request(**request)
        except RequestError as error:
            assert "no capacity" in str(error)
        net.pass_time(0.1)
    assert compared >= 3


def test_many_new_flows_keep_their_number_of_paths() -> None:
    state = State(topologies.load("fat-tree:4:rate_bps=10e6"), Settings())
    state.live.assume_all()
    draw = random.Random(2)
    pairs = [draw.sample(state.live.network.hosts, 2) for _ in range(60)]
    new_flows = [
        NewFlow(f"f{number}", source, destination, 2e6, Framing(), max_paths=2, streams=None)
        for number, (source, destination) in enumerate(pairs)
    ]
    _, paths = optimise_new_flows(state, LiveOptima(state.live), "fair", new_flows)
    assert all(1 <= len(paths[new_flow.id]) <= 2 for new_flow in new_flows)
