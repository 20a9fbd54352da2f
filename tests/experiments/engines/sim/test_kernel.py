"""Simulated hosts send as the kernel's do: by the virtual engine's golden runs, and at assigned rates.

Networks that nobody drew by hand, on both engines, are in tests/experiments/engines/virtual/test_networks.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.model.results import FlowResult
from experiments.sim import Simulation, SimulationResults, make_network
from tests.experiments.engines.virtual import golden

KERNEL: dict[str, Any] = json.loads(golden.GOLDEN.read_text())["runs"]


def delay_s(flow: FlowResult) -> float:
    assert flow.delay_s is not None
    return flow.delay_s.mean


@pytest.mark.parametrize("case", golden.CASES)
@pytest.mark.parametrize("protocol", ["ospf", "mptcp", "mptcp-sdn", "mstcp"])
def test_the_butterfly_is_the_kernels(protocol: str, case: str) -> None:
    (run,) = Simulation.load("butterfly", case).run([protocol], duration_s=golden.DURATION_S).runs
    # In case 2 both ask for all that the links carry: there chance decides how long the queues get,
    # and the kernel's own runs differ by 0.7 % in goodput.
    is_full = case == "2" and protocol in ("mptcp-sdn", "mstcp")
    for flow, kernel in zip(run.flows, KERNEL[f"{protocol}, case {case}"]["flows"], strict=True):
        assert flow.goodput_bps == pytest.approx(kernel["goodput_bps"], rel=0.01 if is_full else 0.005)
        assert delay_s(flow) == pytest.approx(kernel["delay_s"]["mean"], rel=0.35 if is_full else 0.05)


def two_paths(workload: str, protocol: str, **settings: Any) -> SimulationResults:
    """Run a flow of 3 Mbit/s over two paths, of which the shorter one has 2 and the other has 20 Mbit/s."""
    ends = [("H", "A", 50e6, 100), ("A", "B", 2e6, 1000), ("A", "C", 20e6, 2000), ("C", "B", 20e6, 2000)]
    network = make_network(["H", "D"], [*ends, ("B", "D", 50e6, 100)])
    named = {key.replace("__", "."): value for key, value in settings.items()}
    study = Simulation(network, settings=named).flow("H", "D", 3e6, workload=workload)
    return study.run([protocol], seeds=(1, 2, 3), duration_s=5)


@pytest.mark.parametrize(("protocol", "most"), [("mstcp", 1.01), ("mptcp-sdn", 1.0), ("ppfs", 1.0)])
@pytest.mark.parametrize("workload", ["bulk:size=20MB", "cbr", "requests:users=40,sizes=100kB"])
def test_no_protocol_sends_more_than_it_was_assigned(workload: str, protocol: str, most: float) -> None:
    asked_bps = 3e6 if workload == "cbr" else most * 3e6
    for row in two_paths(workload, protocol).flows:
        assert row["goodput_bps"] <= 1.005 * asked_bps
        if protocol != "ppfs":  # whose packets overtake each other, which TCP takes for losses
            assert row["goodput_bps"] == pytest.approx(asked_bps, rel=0.02)
            # Who sends at the rates that the paths were given waits nowhere but for its own round trip.
            assert workload != "cbr" or row["delay_mean_s"] < 0.02


@pytest.mark.parametrize("workload", ["bulk:size=20MB", "cbr"])
def test_what_nothing_is_allocated_to_is_not_paced(workload: str) -> None:
    paced, unpaced = (
        two_paths(workload, "ospf", **settings).runs for settings in ({"sim__pacing": "allocated"}, {})
    )
    assert paced == unpaced
    assert paced[0].flows[0].goodput_bps > 1.8e6


def test_seeds_change_when_flows_start_and_when_they_write() -> None:
    delays = [row["delay_mean_s"] for row in two_paths("cbr", "ospf").flows]
    assert len(set(delays)) == len(delays)
    paper = two_paths("cbr", "ospf", sim__profile="paper").flows
    assert len({row["delay_mean_s"] for row in paper}) == 1
