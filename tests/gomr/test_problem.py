"""Problems that contradict themselves are refused by the name of the field."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from gomr import Demand, Edge, Problem, from_network
from gomr.errors import GomrError, InvalidProblem

import topologies
from tests.gomr.gomr_oracles import two_way

EDGES, REVERSE = two_way(("A", "B", 1e6, 1e-3), ("B", "C", 1e6, 1e-3), ("C", "A", 1e6, 1e-3))
DEMAND = Demand("f", "A", "C", 1e6)
DEMAND_BACK = ("C->B", "B->A")
PROBLEM = Problem(EDGES, (DEMAND,), REVERSE)


def field_refused(**changes: Any) -> str:
    with pytest.raises(InvalidProblem) as refusal:
        replace(PROBLEM, **changes)
    assert isinstance(refusal.value, GomrError)
    assert str(refusal.value) == f"{refusal.value.field}: {refusal.value.reason}"
    return refusal.value.field


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("name", ["rate_bps", "ack_ratio", "weight", "max_delay_s"])
def test_numbers_of_demands(name: str, value: float) -> None:
    changes: dict[str, Any] = {name: value}
    assert field_refused(demands=(replace(DEMAND, **changes),)) == f"demands[f].{name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("capacity_bps", value) for value in (math.nan, -math.inf, -1.0)),  # inf is no limit
        *(("delay_s", value) for value in (math.nan, math.inf, -math.inf, -1.0)),
    ],
)
def test_numbers_of_edges(name: str, value: float) -> None:
    changes: dict[str, Any] = {name: value}
    edges = (*EDGES[:-1], replace(EDGES[-1], **changes))
    assert field_refused(edges=edges) == f"edges[{EDGES[-1].id}].{name}"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": "X"}, "source"),
        ({"destination": "X"}, "destination"),
        ({"destination": "A", "fixed_paths": ((),)}, "destination"),
        ({"destination": "A", "ack_edges": ()}, "destination"),
        ({"weight": 0.0}, "weight"),
        ({"disjoint": "links"}, "disjoint"),
        ({"max_paths": 0}, "max_paths"),
        ({"fixed_paths": ()}, "fixed_paths"),
        ({"fixed_paths": (("A->C",), ("A->C",))}, "fixed_paths"),
        ({"fixed_paths": (("A->C",), ("A->X",))}, "fixed_paths[1]"),
        ({"fixed_paths": (("B->C",),)}, "fixed_paths[0]"),
        ({"fixed_paths": (("A->B",),)}, "fixed_paths[0]"),
        ({"fixed_paths": ((),)}, "fixed_paths[0]"),
        ({"fixed_paths": (("A->B", "B->A", "A->C"),)}, "fixed_paths[0]"),
    ],
)
def test_demands(changes: dict[str, Any], field: str) -> None:
    assert field_refused(demands=(replace(DEMAND, **changes),)) == f"demands[f].{field}"


def test_fixed_paths_through_an_endpoint() -> None:
    demand = replace(DEMAND, fixed_paths=(("A->B", "B->C"),))
    assert field_refused(demands=(demand,), endpoints=frozenset("B")) == "demands[f].fixed_paths[0]"


def test_empty_network() -> None:
    assert field_refused(edges=()) == "edges"


def test_duplicate_ids() -> None:
    assert field_refused(demands=(DEMAND, DEMAND)) == "demands[f].id"
    assert field_refused(edges=(*EDGES, EDGES[0])) == f"edges[{EDGES[0].id}].id"


def test_loops_and_unknown_endpoints() -> None:
    assert field_refused(edges=(*EDGES, Edge("loop", "A", "A", 1e6, 0.0))) == "edges[loop].head"
    assert field_refused(endpoints=frozenset({"X"})) == "endpoints"


def test_reverse_edges() -> None:
    assert field_refused(reverse={"A->B": "X"}) == "reverse[A->B]"
    assert field_refused(reverse={"X": "A->B"}) == "reverse[X]"
    assert field_refused(reverse={"A->B": "B->C"}) == "reverse[A->B]"
    with_acks = (replace(DEMAND, ack_ratio=0.05),)
    assert field_refused(reverse=None, demands=with_acks) == "reverse"
    assert field_refused(reverse={"A->B": "B->A"}, demands=with_acks) == "reverse"


def test_acknowledgements_on_a_path_of_their_own() -> None:
    own_way = replace(DEMAND, ack_ratio=0.05, ack_edges=DEMAND_BACK)
    Problem(EDGES, (own_way,), None)  # needs no reverse edges
    for wrong in ((), ("X",), ("A->B",), DEMAND_BACK[:-1]):
        assert field_refused(demands=(replace(own_way, ack_edges=wrong),)) == "demands[f].ack_edges"


def test_from_network() -> None:
    network = topologies.load("butterfly")
    problem = from_network(network, [Demand("f", "T0", "T2", 1e6)], down={"S0-S4"})
    assert len(problem.edges) == 2 * len(network.links)
    assert problem.endpoints == {"T0", "T1", "T2", "T3"}
    assert problem.edges_by_id["S0->S4"] == Edge("S0->S4", "S0", "S4", 0.0, 1e-3)
    assert problem.edges_by_id["S5->S1"].capacity_bps == 30e6
    assert problem.reverse is not None
    assert problem.reverse["S5->S1"] == "S1->S5"


def test_from_network_with_an_unknown_link() -> None:
    with pytest.raises(InvalidProblem) as refusal:
        from_network(topologies.load("butterfly"), [], down={"S0-S9"})
    assert refusal.value.field == "down"
