"""`solve`: names, limits, and what it makes of an engine's answer."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from functools import partial

import gomr
import pytest
from gomr import DEFAULT_ENGINE, ENGINES, OBJECTIVES, Demand, Edge, PathRate, Problem, from_network, solving
from gomr.demands import Traffic
from gomr.engines.assembly import NativeResult
from gomr.engines.by_edges import engine as by_edges
from gomr.engines.by_edges.highs_program import HighsProgram
from gomr.engines.by_edges.pulp_program import PulpProgram
from gomr.engines.result import EngineResult
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.errors import InvalidProblem, SolverError
from gomr.even_split import spread
from gomr.load import at_load
from gomr.solving import allocate

import topologies
from tests.gomr.gomr_oracles import check_allocation

PROGRAMS: dict[str, by_edges.Programs] = {"highs": HighsProgram, "pulp": PulpProgram}
EDGE = Edge("e", "A", "B", 10e6, 1e-3)
PROBLEM = Problem((EDGE,), (Demand("f", "A", "B", 8e6), Demand("g", "A", "B", 8e6)))


def answering(monkeypatch: pytest.MonkeyPatch, f_bps: float, g_bps: float) -> None:
    """Put an engine in place that gives these rates."""
    answer = EngineResult({"f": [((EDGE,), f_bps)], "g": [((EDGE,), g_bps)]}, {"e": 1.0})
    monkeypatch.setattr(solving, "ENGINES", {"given": lambda: lambda *_: answer})


def test_public_names() -> None:
    assert gomr.__all__ == [
        "DEFAULT_ENGINE",
        "ENGINES",
        "OBJECTIVES",
        "Allocation",
        "Backup",
        "Certificate",
        "Demand",
        "DemandColumns",
        "Edge",
        "Engine",
        "EventResult",
        "FailureProof",
        "GomrError",
        "InvalidProblem",
        "Moves",
        "PathRate",
        "Priorities",
        "Problem",
        "Reallocation",
        "RobustSplits",
        "SegmentRouting",
        "Solution",
        "SolverError",
        "Upgrade",
        "at_load",
        "backup_paths",
        "bounded_moves",
        "failure_proof",
        "from_network",
        "from_networkx",
        "least_upgrade",
        "link_failures",
        "node_failures",
        "problem_of",
        "robust_splits",
        "solve",
        "solve_priorities",
        "solve_segments",
        "solve_series",
        "survey_failures",
    ]
    assert list(OBJECTIVES) == [
        "max_throughput_min_delay",
        "fair",
        "max_min",
        "min_max_utilisation",
        "even_split",
    ]
    assert list(ENGINES) == ["native", "highs", "pulp"]
    assert allocate(PROBLEM).engine == DEFAULT_ENGINE == "native"


def test_importing_gomr_loads_no_solver() -> None:
    script = "import sys, gomr; sys.exit('pulp' in sys.modules or 'highspy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("name", ["objective", "engine"])
def test_unknown_names_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidProblem, match="'best' is not one of") as refusal:
        allocate(PROBLEM, **{name: "best"})  # type: ignore[arg-type]
    assert refusal.value.field == name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_time_the_answer_is_within_the_limits_and_bounded(engine: str, objective: str) -> None:
    whole = allocate(PROBLEM, objective, engine)
    allocation = allocate(PROBLEM, objective, engine, time_limit_s=0.0)
    assert allocation.timed_out
    check_allocation(PROBLEM, allocation)
    assert allocation.upper_bound_bps >= whole.value_bps * (1 - 1e-9)


@pytest.mark.parametrize("engine", PROGRAMS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_time_that_runs_out_midway_leaves_rates_within_the_limits(engine: str, objective: str) -> None:
    # Every look at this clock takes a second.
    solve = by_edges.engine(PROGRAMS[engine], engine)
    seconds = itertools.count()
    solve(PROBLEM, OBJECTIVES[objective], 1e6, clock=lambda: float(next(seconds)))
    whole_s = next(seconds)
    reached = []
    for limit_s in range(1, whole_s // 2):
        seconds = itertools.count()
        tick = partial(lambda count: float(next(count)), seconds)
        answer = solve(PROBLEM, OBJECTIVES[objective], limit_s, clock=tick)
        assert not answer.complete
        audit = NativeResult.of(PROBLEM, answer).audit(OBJECTIVES[objective])
        assert audit.max_violation_bps <= 1e-9 * PROBLEM.unit_bps
        reached.append(sum(rate_bps for paths in answer.rates.values() for _, rate_bps in paths))
    assert whole_s < 6 or reached[-1] > 0


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_time_limit_leads_to_the_best_answer_so_far_with_its_gap(engine: str, objective: str) -> None:
    # Where the limit strikes depends on the machine; what comes of it must not.
    network = topologies.load("waxman:12:seed=1")
    problem = at_load(from_network(network, Traffic("gravity", network.hosts, 1).flows(40)), 1.2)
    whole = allocate(problem, objective, engine, clock=lambda: 0.0)
    assert not whole.timed_out
    for power in range(-20, 4, 3):
        allocation = allocate(problem, objective, engine, time_limit_s=2.0**power, clock=lambda: 0.0)
        if not allocation.timed_out:
            assert allocation == whole
            continue
        assert allocation.max_violation_bps <= 1e-9 * problem.unit_bps
        assert allocation.upper_bound_bps >= whole.value_bps * (1 - 1e-9)
        assert allocation.gap == pytest.approx(
            1 - allocation.value_bps / allocation.upper_bound_bps, abs=1e-12
        )


def test_an_even_split_over_hundreds_of_paths_ends_when_the_time_does() -> None:
    # Two flows share the link that both fill in part: every pair of their 201 paths has a difference.
    edges = tuple(Edge(f"e{i}", "A", "B", 1e9, 1e-3) for i in range(400))
    problem = Problem(edges, (Demand("f", "A", "B", 200.5e9), Demand("g", "A", "B", 300e9)))
    even = allocate(problem, "even_split")
    assert not even.timed_out
    assert even.admitted_bps == pytest.approx(400e9)
    assert all(len(paths) > 100 for paths in even.paths.values())
    routed = {
        name: [(tuple(problem.edges_by_id[edge] for edge in path.edges), path.rate_bps) for path in paths]
        for name, paths in allocate(problem).paths.items()
    }
    looks = itertools.count()
    spread(problem, routed, TimeBudget("native", 1e6, looks.__next__))
    for limit_s in range(next(looks) - 1):
        with pytest.raises(OutOfTime):
            spread(problem, routed, TimeBudget("native", limit_s, itertools.count().__next__))


def test_limits_on_paths_hold_without_time() -> None:
    edges = tuple(Edge(f"e{i}", "A", "B", i * 1e6, 1e-3 * i) for i in range(1, 5))
    problem = Problem(edges, (Demand("f", "A", "B", 20e6, max_paths=2),))
    allocation = allocate(problem, time_limit_s=0.0)
    assert allocation.timed_out
    assert len(allocation.paths["f"]) <= 2


@pytest.mark.parametrize("limit_s", [math.nan, -1.0])
def test_a_time_limit_is_a_number_of_seconds(limit_s: float) -> None:
    with pytest.raises(InvalidProblem, match="time_limit_s"):
        allocate(PROBLEM, time_limit_s=limit_s)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_flow_within_one_node_needs_no_network(engine: str) -> None:
    problem = Problem((EDGE,), (Demand("here", "A", "A", 3e6), Demand("f", "A", "B", 20e6)))
    for objective in OBJECTIVES:
        allocation = allocate(problem, objective, engine)
        assert allocation.paths["here"] == (PathRate((), ("A",), 3e6, 0.0),)
        assert allocation.admitted_bps == pytest.approx(13e6)
        assert allocation.gap == pytest.approx(0.0, abs=1e-9)


def test_the_time_is_the_clocks() -> None:
    times = iter([10.0, 12.5])
    assert allocate(PROBLEM, clock=lambda: next(times)).wall_s == 2.5


def test_rounding_is_scaled_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 8e6 * (1 + 1e-9), 2e6 * (1 + 1e-9))
    allocation = allocate(PROBLEM, engine="given")
    assert allocation.max_violation_bps <= 1e-8
    assert allocation.admitted_bps == pytest.approx(10e6, rel=1e-12)
    assert allocation.gap == pytest.approx(0.0, abs=1e-12)


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 8e6, 3e6)
    with pytest.raises(SolverError, match=r"over a limit by 1e\+06 bit/s"):
        allocate(PROBLEM, engine="given")


def test_a_poor_answer_shows_in_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 5e6, 0.0)
    allocation = allocate(PROBLEM, engine="given")
    assert allocation.gap == pytest.approx(0.5)
    assert allocation.paths["g"] == ()
    assert allocation.rate_bps("f") == 5e6
