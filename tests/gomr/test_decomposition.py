"""Arc flows taken apart into paths."""

from __future__ import annotations

from gomr import Demand, Edge
from gomr.engines.decomposition import decompose

AB = Edge("ab", "A", "B", 10, 1e-3)
BC = Edge("bc", "B", "C", 10, 1e-3)
AC = Edge("ac", "A", "C", 10, 5e-3)
CB = Edge("cb", "C", "B", 10, 1e-3)


def ids(paths: list[tuple[tuple[Edge, ...], float]]) -> list[tuple[str, float]]:
    return [("-".join(edge.id for edge in path), rate) for path, rate in paths]


def test_the_fullest_path_comes_first() -> None:
    paths = decompose({AC: 0.25, AB: 0.5, BC: 0.5}, [(Demand("f", "A", "C", 1), 0.75)])
    assert ids(paths["f"]) == [("ab-bc", 0.5), ("ac", 0.25)]


def test_cycles_are_left_behind() -> None:
    paths = decompose({AB: 0.75, BC: 0.5, CB: 0.25}, [(Demand("f", "A", "C", 1), 0.25)])
    assert ids(paths["f"]) == [("ab-bc", 0.25)]


def test_demands_of_one_source_share_its_flow() -> None:
    demands = [(Demand("c", "A", "C", 1), 0.5), (Demand("b", "A", "B", 1), 0.25)]
    paths = decompose({AB: 0.5, BC: 0.25, AC: 0.25}, demands)
    assert ids(paths["c"]) == [("ab-bc", 0.25), ("ac", 0.25)]
    assert ids(paths["b"]) == [("ab", 0.25)]


def test_rounding_makes_no_paths() -> None:
    paths = decompose({AC: 0.5, AB: 1e-14, BC: 1e-14}, [(Demand("f", "A", "C", 1), 0.5)])
    assert ids(paths["f"]) == [("ac", 0.5)]


def test_what_has_no_flow_gets_no_path() -> None:
    assert decompose({AB: 0.5}, [(Demand("f", "A", "C", 1), 0.5)]) == {"f": []}
