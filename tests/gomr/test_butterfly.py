"""The butterfly network of the MSTCP paper: its Table I as GOMR computes it."""

from __future__ import annotations

import pytest
from gomr import Allocation, Demand, from_network
from gomr.solving import allocate

import topologies
from tests.gomr.gomr_oracles import check_allocation, rates

WIRE_PER_GOODPUT = 590 / 528
"""Packets of 590 bytes carry 528 bytes of data beside the 64-bit identifier."""


def butterfly(
    flow_1_bps: float, flow_2_bps: float, objective: str, variant: str, ack_ratio: float
) -> Allocation:
    network = topologies.load("butterfly", variant)
    demands = (
        Demand("1", "T0", "T2", flow_1_bps, ack_ratio=ack_ratio),
        Demand("2", "T1", "T3", flow_2_bps, ack_ratio=ack_ratio),
    )
    problem = from_network(network, demands)
    allocation = allocate(problem, objective)
    check_allocation(problem, allocation)
    assert allocation.gap == pytest.approx(0, abs=1e-12)
    return allocation


@pytest.mark.parametrize("ack_ratio", [0.0, 0.0458])
@pytest.mark.parametrize("variant", ["a", "b"])
def test_scenario_1_split_evenly_is_the_papers(variant: str, ack_ratio: float) -> None:
    allocation = butterfly(
        8.5e6 * WIRE_PER_GOODPUT, 4.5e6 * WIRE_PER_GOODPUT, "even_split", variant, ack_ratio
    )
    goodput = {path: rate / WIRE_PER_GOODPUT for path, rate in rates(allocation, "1").items()}
    assert goodput == pytest.approx({"T0-S0-S4-T2": 4.25e6, "T0-S0-S2-S3-S4-T2": 4.25e6}, rel=1e-9)
    goodput = {path: rate / WIRE_PER_GOODPUT for path, rate in rates(allocation, "2").items()}
    assert goodput == pytest.approx({"T1-S1-S2-S3-S5-T3": 4.5e6}, rel=1e-9)


def test_scenario_1_with_least_delay_fills_the_short_path_first() -> None:
    allocation = butterfly(
        8.5e6 * WIRE_PER_GOODPUT, 4.5e6 * WIRE_PER_GOODPUT, "max_throughput_min_delay", "a", 0.0
    )
    expected = {"T0-S0-S4-T2": 5e6, "T0-S0-S2-S3-S4-T2": 8.5e6 * WIRE_PER_GOODPUT - 5e6}
    assert rates(allocation, "1") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "even_split"])
@pytest.mark.parametrize("variant", ["a", "b"])
def test_scenario_2_uses_the_full_capacity(variant: str, objective: str) -> None:
    allocation = butterfly(10e6, 35e6, objective, variant, 0.0)
    assert rates(allocation, "1") == pytest.approx({"T0-S0-S4-T2": 5e6, "T0-S0-S2-S3-S4-T2": 5e6}, rel=1e-9)
    assert rates(allocation, "2") == pytest.approx({"T1-S1-S5-T3": 30e6, "T1-S1-S2-S3-S5-T3": 5e6}, rel=1e-9)


def test_a_lost_link_leaves_the_other_paths() -> None:
    demands = (Demand("1", "T0", "T2", 10e6), Demand("2", "T1", "T3", 35e6))
    allocation = allocate(from_network(topologies.load("butterfly"), demands, down={"S4-S0"}))
    assert rates(allocation, "1") == {"T0-S0-S2-S3-S4-T2": 5e6}
