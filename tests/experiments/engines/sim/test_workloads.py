"""Workloads in the simulator: files, on/off, requests, writes that wait, queues bounded in bytes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from experiments.apps.config import flow_seed
from experiments.engines.sim.engine import SimEngine
from experiments.model.results import FlowResult
from experiments.sim import Simulation, make_network
from experiments.workloads import OnOff
from experiments.workloads.sizes import NAMED
from tests.experiments.engines.sim.sim_plans import plan_of

PROTOCOLS = ("ospf", "ecmp", "ppfs", "mstcp")
FILE_BYTES = 200_000


def flow_of(protocol: str, workload: dict[str, Any], duration_s: float = 10, **sets: Any) -> FlowResult:
    plan = plan_of(protocol, duration_s=duration_s, workload=workload, warm_up_s=0, **sets)
    return SimEngine().simulate(plan).flows[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_file_takes_no_less_than_the_capacity_allows(protocol: str) -> None:
    flow = flow_of(protocol, {"kind": "bulk", "size_bytes": FILE_BYTES})
    assert flow.transfers is not None
    assert (flow.transfers.started, flow.transfers.completed) == (1, 1)
    assert flow.completion_s is not None
    # Flow 1 leaves its source at 10 + 5 Mbit/s at most.
    assert FILE_BYTES * 8 / 15e6 < flow.completion_s < 1.5
    assert flow.active_goodput_bps == pytest.approx(FILE_BYTES * 8 / flow.completion_s)
    assert flow.bytes_read == FILE_BYTES
    assert flow.fct_s is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_requests_are_answered(protocol: str) -> None:
    flow = flow_of(protocol, {"kind": "requests", "users": 2, "think_s": 0.02, "sizes": 5000})
    assert flow.transfers is not None
    assert flow.fct_s is not None
    # The users wait or think all the time (Little).
    cycles = flow.transfers.completed * (flow.fct_s.mean + 0.02)
    assert cycles == pytest.approx(2 * 10, rel=0.08)
    assert flow.fct_s.quantiles[0] <= flow.fct_s.p50 <= flow.fct_s.p99 <= flow.fct_s.max
    assert flow.workload is not None
    assert flow.workload["kind"] == "requests"


def test_a_named_distribution_reaches_the_simulator() -> None:
    sizes = {"kind": "web-search", "scale": 0.001}
    flow = flow_of("mstcp", {"kind": "requests", "per_s": 100, "sizes": sizes}, duration_s=20)
    assert flow.transfers is not None
    assert flow.transfers.started == pytest.approx(2000, rel=0.1)
    mean_bytes = flow.bytes_read / flow.transfers.completed
    assert NAMED["web-search"][0][0] * 0.001 < mean_bytes < NAMED["web-search"][-1][0] * 0.001


def test_on_and_off() -> None:
    workload = {"kind": "onoff", "on_s": 0.5, "off_s": 1.5, "lengths": "fixed"}
    flow = flow_of("mstcp", workload, duration_s=20)
    assert flow.active_goodput_bps == pytest.approx(8.95e6, rel=0.01)
    assert flow.goodput_bps == pytest.approx(8.95e6 / 4, rel=0.01)
    assert flow.transfers is None


def test_what_a_full_buffer_skips_it_can_wait_for() -> None:
    skipping = flow_of("ospf", {"kind": "cbr"})
    waiting = flow_of("ospf", {"kind": "cbr"}, sim__when_full="wait")
    assert skipping.ticks_skipped > 1000
    assert waiting.ticks_skipped == 0
    assert waiting.goodput_bps == pytest.approx(skipping.goodput_bps, rel=0.01)


def test_a_queue_can_be_bounded_in_bytes() -> None:
    def dropped(settings: dict[str, Any]) -> int:
        network = make_network(["A", "B"], [("A", "S", 20e6, 1000), ("S", "B", 5e6, 1000)])
        study = Simulation(network, settings=settings).flow("A", "B", 5e6, workload="bulk:size=20MB")
        results = study.run(["ospf"], duration_s=10)
        return sum(row["packets_dropped"] for row in results.links)

    assert dropped({}) == 0
    assert dropped({"links.S-B.queue_bytes": 30_000}) > 0


def test_on_periods_are_those_of_the_workload_and_no_others() -> None:
    workload = OnOff(on_s=0.15, off_s=0.45)
    network = make_network(["A", "B"], [("A", "S", 20e6, 1000), ("S", "B", 20e6, 1000)])
    kind = "onoff:on=150ms,off=450ms"
    study = Simulation(network, settings={"sim.tick_jitter": 0.0}).flow("A", "B", 2e6, workload=kind)
    for row in study.run(["ospf"], seeds=range(1, 9), duration_s=3).flows:
        decisions = workload.decisions(2e6, 1448, flow_seed(row["seed"], 0))
        due = sum(size for _, size in itertools.takewhile(lambda decision: decision.time_s < 3, decisions))
        # The flow starts up to a millisecond late, and what is under way at the end is not read.
        assert due - 2 * 1448 <= row["goodput_bps"] * 3 / 8 <= due + 1, row["seed"]
