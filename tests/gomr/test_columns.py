"""Demands in arrays: the same answers as from `Demand`s, and the same refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gomr import OBJECTIVES, Demand, DemandColumns, Edge, Problem, from_network
from gomr.allocation import loads_of_allocation
from gomr.engines.native import engine as native
from gomr.errors import InvalidProblem
from gomr.load import at_load, load_factor
from gomr.solving import allocate

import topologies
from tests.gomr.gomr_oracles import check_allocation

NODES = ("A", "B", "C")
MATRIX = np.array([[9.0, 1.0, 2.0], [0.0, 9.0, 3.0], [4.0, 0.0, 9.0]])


def test_a_matrix_makes_a_demand_of_each_rate_off_the_diagonal() -> None:
    demands = DemandColumns.from_matrix(NODES, MATRIX)
    assert list(demands) == [
        Demand("A->B", "A", "B", 1.0),
        Demand("A->C", "A", "C", 2.0),
        Demand("B->C", "B", "C", 3.0),
        Demand("C->A", "C", "A", 4.0),
    ]
    assert demands[1:3] == (demands[1], demands[2])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_answer_is_that_of_single_demands(objective: str) -> None:
    network = topologies.load("waxman:12:seed=1")
    draw = np.random.default_rng(1)
    hosts = list(network.hosts)
    columns = DemandColumns.from_matrix(hosts, draw.exponential(size=(len(hosts), len(hosts))))
    problem = at_load(from_network(network, columns), 1.2)
    allocation = allocate(problem, objective)
    single = allocate(from_network(network, tuple(problem.demands)), objective)
    check_allocation(problem, allocation)
    assert allocation.gap <= 1e-9
    assert allocation.value_bps == pytest.approx(single.value_bps, rel=1e-12)
    assert allocation.paths.keys() == single.paths.keys()
    loads_bps = loads_of_allocation(problem, allocation)
    assert loads_bps == pytest.approx(loads_of_allocation(problem, single), rel=1e-9, abs=1e-3)


def test_demands_that_stay_at_their_source_are_admitted() -> None:
    demands = DemandColumns(["f", "g"], NODES, [0, 1], [0, 2], [5.0, 7.0])
    allocation = allocate(Problem((Edge("BC", "B", "C", 4.0, 1.0), Edge("AB", "A", "B", 1.0, 1.0)), demands))
    assert (allocation.rate_bps("f"), allocation.rate_bps("g")) == (5.0, 4.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rate_bps": [1.0, np.nan]}, "demands[g].rate_bps"),
        ({"rate_bps": [1.0, -1.0]}, "demands[g].rate_bps"),
        ({"rate_bps": [1.0]}, "demands"),
        ({"source": [0, 3]}, "demands.source"),
        ({"ids": ["f", "f"]}, "demands"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, object], field: str) -> None:
    columns: dict[str, object] = {
        "ids": ["f", "g"],
        "nodes": NODES,
        "source": [0, 1],
        "destination": [1, 2],
        "rate_bps": [1.0, 2.0],
    }
    with pytest.raises(InvalidProblem) as refusal:
        DemandColumns(**(columns | change))  # type: ignore[arg-type]
    assert refusal.value.field == field


@pytest.mark.parametrize("rate", ["5 Mbit/s", "5", None, True, 1.7e308, -1.0])
def test_a_rate_that_is_no_usable_number_is_refused_by_name(rate: object) -> None:
    edge = Edge("e", "A", "B", 1.0, 1.0)
    with pytest.raises(InvalidProblem, match=r"demands\[f\]\.rate_bps: must be a"):
        Problem((edge,), (Demand("f", "A", "B", rate),))  # type: ignore[arg-type]


def test_a_rate_of_0_gets_nothing_and_harms_nobody() -> None:
    edge = Edge("e", "A", "B", 1.0, 1.0)
    allocation = allocate(Problem((edge,), (Demand("f", "A", "B", 0.0), Demand("g", "A", "B", 2.0))))
    assert (allocation.paths["f"], allocation.rate_bps("g"), allocation.gap) == ((), 1.0, 0.0)


@pytest.mark.parametrize("load", [0.9, 1.3])
def test_a_matrix_routed_by_source_is_as_good_as_commodity_by_commodity(
    load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = topologies.load("waxman:40:seed=3")
    draw = np.random.default_rng(3)
    rates = draw.exponential(size=(len(network.hosts), len(network.hosts)))
    problem = from_network(network, DemandColumns.from_matrix(network.hosts, rates))
    factor = load_factor(problem, 1.0)
    assert isinstance(problem.demands, DemandColumns)
    problem = replace(problem, demands=problem.demands.scaled(load * factor))
    singly = allocate(problem)
    monkeypatch.setattr(native, "MATRIX_DEMANDS", 1000)
    monkeypatch.setattr(native, "MATRIX_DEMANDS_PER_NODE", 10)
    together = allocate(problem)
    assert together.admitted_bps == pytest.approx(singly.admitted_bps, rel=1e-9)
    assert together.cost_bps_s == pytest.approx(singly.cost_bps_s, rel=1e-9)
    assert together.gap < 1e-9
    assert (load < 1) == (together.admitted_bps > together.requested_bps * (1 - 1e-9))
    late = allocate(problem, time_limit_s=0.0)
    assert late.timed_out and late.max_violation_bps <= 1e-6
    assert late.admitted_bps > 0
