"""Shortest and disjoint paths of the compiled engine against enumeration."""

from __future__ import annotations

import pytest
from gomr import Demand, Edge, Problem
from gomr.errors import InvalidProblem
from gomr.paths.finder import PathFinder, are_disjoint
from gomr.problem import Path
from gomr.solving import allocate
from hypothesis import given, settings

from tests.gomr.gomr_oracles import edge_paths, problems

unhurried = settings(deadline=None)


def length(problem: Problem, path: Path) -> float:
    """The delay of a path; its number of edges if no edge has any."""
    if all(edge.delay_s == 0 for edge in problem.edges):
        return len(path)
    return sum(edge.delay_s for edge in path)


def every_path(problem: Problem, source: str, destination: str) -> list[Path]:
    every = edge_paths(problem, Demand("f", source, destination, 1.0))
    return [path for path in every if all(edge.capacity_bps > 0 for edge in path)]


@given(problems())
@unhurried
def test_k_shortest_paths_are_the_first_of_all(problem: Problem) -> None:
    source, destination = problem.edges[0].tail, problem.edges[0].head
    everything = every_path(problem, source, destination)
    shortest = PathFinder(problem).shortest(source, destination, 6)
    assert len(set(shortest)) == len(shortest) == min(6, len(everything))
    assert set(shortest) <= set(everything)
    lengths = sorted(length(problem, path) for path in everything)
    assert [length(problem, path) for path in shortest] == pytest.approx(lengths[:6])


@pytest.mark.parametrize("nodes", [False, True])
@given(problem=problems(acks=False))
@unhurried
def test_disjoint_paths_are_the_most_and_the_shortest_there_are(nodes: bool, problem: Problem) -> None:
    source, destination = problem.edges[0].tail, problem.edges[0].head
    disjoint = PathFinder(problem).disjoint(source, destination, 100, nodes=nodes)
    assert are_disjoint(disjoint, nodes=nodes)
    everything = every_path(problem, source, destination)
    assert set(disjoint) <= set(everything)
    sets: list[list[Path]] = [[]]
    for path in everything:
        sets += [[*own, path] for own in sets if are_disjoint([*own, path], nodes=nodes)]
    most = max(map(len, sets))
    assert len(disjoint) == most
    least = min(sum(length(problem, path) for path in own) for own in sets if len(own) == most)
    assert sum(length(problem, path) for path in disjoint) == pytest.approx(least, abs=1e-9)


def test_the_greedy_choice_is_not_the_best_pair() -> None:
    # The shortest path A-B-C-D takes the edges that two disjoint ones need.
    ways = [("A", "B", 1), ("B", "C", 1), ("C", "D", 1), ("A", "C", 3), ("B", "D", 3)]
    edges = tuple(Edge(f"{a}{b}", a, b, 1.0, ms * 1e-3) for a, b, ms in ways)
    finder = PathFinder(Problem(edges, ()))
    assert [edge.id for edge in finder.shortest("A", "D", 1)[0]] == ["AB", "BC", "CD"]
    pair = finder.disjoint("A", "D", 2)
    assert sorted([edge.id for edge in path] for path in pair) == [["AB", "BD"], ["AC", "CD"]]


def test_wrong_arguments_are_named() -> None:
    finder = PathFinder(Problem((Edge("e", "A", "B", 1.0, 1e-3),), ()))
    for find in (finder.shortest, finder.disjoint):
        for source, destination, count, field in (
            ("Z", "B", 1, "source"),
            ("A", "Z", 1, "destination"),
            ("A", "B", -1, "count"),
        ):
            with pytest.raises(InvalidProblem) as refusal:
                find(source, destination, count)
            assert refusal.value.field == field


@pytest.mark.parametrize("longer", [9, 40])
def test_a_limited_flow_takes_a_path_that_is_not_among_its_shortest(longer: int) -> None:
    # The best single path is longer than all that carry the optimum without the limit.
    short = tuple(Edge(f"e{number}", "A", "B", 1.0, 1e-3) for number in range(longer))
    problem = Problem(
        (*short, Edge("wide", "A", "B", 100.0, 9e-3)), (Demand("f", "A", "B", float(longer), max_paths=1),)
    )
    allocation = allocate(problem)
    assert [path.edges for path in allocation.paths["f"]] == [("wide",)]
    assert allocation.admitted_bps == pytest.approx(longer)
