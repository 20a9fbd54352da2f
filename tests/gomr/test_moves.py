"""Running flows get better paths: few of them, and only where it is worth it."""

from __future__ import annotations

import pytest
from gomr import Demand, Edge, Engine, Problem, bounded_moves
from gomr.errors import InvalidProblem
from gomr.solving import allocate

EDGES = tuple(
    Edge(name, name[0], name[1], 10.0, delay_s)
    for name, delay_s in (("SA", 1.0), ("AD", 1.0), ("SB", 2.0), ("BD", 2.0), ("SC", 3.0), ("CD", 3.0))
)
FLOWS = tuple(Demand(f"f{number}", "S", "D", 10.0) for number in range(3))
PROBLEM = Problem(EDGES, FLOWS)
RUNNING = {flow.id: (("SA", "AD"),) for flow in FLOWS}
"""All three over one way, where there are three."""


@pytest.mark.parametrize(("most_moves", "admitted_bps"), [(0, 10.0), (1, 20.0), (2, 30.0), (9, 30.0)])
def test_no_more_flows_move_than_may(most_moves: int, admitted_bps: float) -> None:
    moves = bounded_moves(PROBLEM, RUNNING, most_moves=most_moves, least_gain=0.01)
    assert moves.before.admitted_bps == pytest.approx(10.0)
    assert moves.after.admitted_bps == pytest.approx(admitted_bps)
    assert len(moves.moved) <= most_moves
    assert moves.gain == pytest.approx(admitted_bps / 10.0 - 1)


def test_no_flow_moves_for_less_than_the_threshold() -> None:
    moves = bounded_moves(PROBLEM, RUNNING, most_moves=1, least_gain=1.5)
    assert moves.moved == ()
    assert moves.after is moves.before


def test_flows_at_their_optimum_stay() -> None:
    best = allocate(PROBLEM)
    running = {name: tuple(path.edges for path in paths) for name, paths in best.paths.items()}
    assert bounded_moves(PROBLEM, running, most_moves=9, least_gain=1e-9).moved == ()


def test_flows_and_numbers_are_checked() -> None:
    with pytest.raises(InvalidProblem, match="there is no such flow"):
        bounded_moves(PROBLEM, {"x": (("SA", "AD"),)}, most_moves=1, least_gain=0.0)
    with pytest.raises(InvalidProblem, match="least_gain"):
        bounded_moves(PROBLEM, RUNNING, most_moves=1, least_gain=-1.0)


def test_a_live_optimum_is_certified_from_its_paths() -> None:
    live = Engine(PROBLEM)
    live.fail_link("SB")
    certified = live.certified()
    assert certified.paths == live.allocation.paths
    assert certified.gap <= 1e-12
    assert certified.max_violation_bps <= 1e-12
