"""`solve`: names, limits, and what it makes of an engine's answer."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from types import ModuleType

import pytest

import controller.gomr
import topologies
from controller.errors import InvalidProblem, SolverError
from controller.gomr import (
    DEFAULT_ENGINE,
    ENGINES,
    OBJECTIVES,
    Demand,
    Edge,
    PathRate,
    Problem,
    from_network,
    solve,
    solving,
)
from controller.gomr.demands import Traffic
from controller.gomr.engines.answer import Answer
from controller.gomr.engines.highs import engine as highs_engine
from controller.gomr.engines.pulp import engine as pulp_engine
from controller.gomr.load import at_load

EDGE = Edge("e", "A", "B", 10e6, 1e-3)
PROBLEM = Problem((EDGE,), (Demand("f", "A", "B", 8e6), Demand("g", "A", "B", 8e6)))


def answering(monkeypatch: pytest.MonkeyPatch, f_bps: float, g_bps: float) -> None:
    """Put an engine in place that gives these rates."""
    answer = Answer({"f": [((EDGE,), f_bps)], "g": [((EDGE,), g_bps)]}, {"e": 1.0})
    monkeypatch.setattr(solving, "ENGINES", {"given": lambda: lambda *_: answer})


def test_public_names() -> None:
    assert controller.gomr.__all__ == [
        "DEFAULT_ENGINE",
        "ENGINES",
        "OBJECTIVES",
        "Allocation",
        "Change",
        "Churn",
        "Demand",
        "DemandColumns",
        "Edge",
        "LiveEngine",
        "Moves",
        "PathRate",
        "Problem",
        "bounded_moves",
        "from_network",
        "from_networkx",
        "solve",
    ]
    assert list(OBJECTIVES) == [
        "max_throughput_min_delay",
        "fair",
        "max_min",
        "min_max_utilisation",
        "even_split",
    ]
    assert list(ENGINES) == ["native", "highs", "pulp"]
    assert solve(PROBLEM).engine == DEFAULT_ENGINE == "native"


def test_importing_gomr_loads_no_solver() -> None:
    script = "import sys, controller.gomr; sys.exit('pulp' in sys.modules or 'highspy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("name", ["objective", "engine"])
def test_unknown_names_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidProblem, match="'best' is not one of") as refusal:
        solve(PROBLEM, **{name: "best"})  # type: ignore[arg-type]
    assert refusal.value.field == name


@pytest.mark.parametrize("engine", ["highs", "pulp"])
def test_no_time_is_an_error_not_a_partial_answer(engine: str) -> None:
    for objective in OBJECTIVES:
        with pytest.raises(SolverError, match="time limit of|time limit was") as failure:
            solve(PROBLEM, objective, engine, time_limit_s=0.0)
        assert failure.value.engine == engine
        assert failure.value.state
        assert str(failure.value).endswith(")")


@pytest.mark.parametrize("engine", [highs_engine, pulp_engine])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_time_that_runs_out_midway_is_an_error_with_its_state(engine: ModuleType, objective: str) -> None:
    # Every look at this clock takes a second.
    seconds = itertools.count()
    engine.solve(PROBLEM, objective, 1e6, clock=lambda: float(next(seconds)))
    whole_s = next(seconds)
    for limit_s in range(1, whole_s // 2):
        seconds = itertools.count()
        with pytest.raises(SolverError, match=f"the time limit of {limit_s} s is used up") as failure:
            engine.solve(PROBLEM, objective, limit_s, clock=lambda seconds=seconds: float(next(seconds)))
        state = failure.value.state
        assert state["stage"] in ("throughput", "levels", "delay", "utilisation", "even split")
        assert float(state["solves"]) >= 1
        assert math.isfinite(float(state["objective"]))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_native_gives_the_best_answer_so_far_with_its_gap(objective: str) -> None:
    network = topologies.load("waxman:12:seed=1")
    problem = at_load(from_network(network, Traffic("gravity", network.hosts, 1).flows(40)), 1.2)
    whole = solve(problem, objective)
    for limit_s in (0.0, 1e-4, 3e-4, 1e-3, 10.0):
        found = solve(problem, objective, time_limit_s=limit_s)
        assert found.max_violation_bps <= 1e-9 * problem.unit_bps
        assert found.upper_bound_bps >= whole.value_bps * (1 - 1e-9)
        assert found.gap == pytest.approx(1 - found.value_bps / found.upper_bound_bps, abs=1e-12)
        assert found.timed_out or found.value_bps == pytest.approx(whole.value_bps)
    assert solve(problem, objective, time_limit_s=0.0).timed_out
    assert not whole.timed_out


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("engine", ["highs", "pulp"])
def test_a_time_limit_leads_to_the_whole_answer_or_to_none(engine: str, objective: str) -> None:
    # Where the limit strikes depends on the machine; what comes of it must not.
    network = topologies.load("waxman:12:seed=1")
    problem = at_load(from_network(network, Traffic("gravity", network.hosts, 1).flows(40)), 1.2)
    whole = solve(problem, objective, engine, clock=lambda: 0.0)
    for power in range(-20, 4, 2):
        try:
            limited = solve(problem, objective, engine, time_limit_s=2.0**power, clock=lambda: 0.0)
        except SolverError as failure:
            assert failure.engine == engine
            assert "time limit" in str(failure)
            assert failure.state["stage"]
            continue
        assert limited == whole


@pytest.mark.parametrize("limit_s", [math.nan, -1.0])
def test_a_time_limit_is_a_number_of_seconds(limit_s: float) -> None:
    with pytest.raises(InvalidProblem, match="time_limit_s"):
        solve(PROBLEM, time_limit_s=limit_s)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_flow_within_one_node_needs_no_network(engine: str) -> None:
    problem = Problem((EDGE,), (Demand("here", "A", "A", 3e6), Demand("f", "A", "B", 20e6)))
    for objective in OBJECTIVES:
        allocation = solve(problem, objective, engine)
        assert allocation.paths["here"] == (PathRate((), ("A",), 3e6, 0.0),)
        assert allocation.admitted_bps == pytest.approx(13e6)
        assert allocation.gap == pytest.approx(0.0, abs=1e-9)


def test_the_time_is_the_clocks() -> None:
    times = iter([10.0, 12.5])
    assert solve(PROBLEM, clock=lambda: next(times)).wall_s == 2.5


def test_rounding_is_scaled_away(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 8e6 * (1 + 1e-9), 2e6 * (1 + 1e-9))
    allocation = solve(PROBLEM, engine="given")
    assert allocation.max_violation_bps <= 1e-8
    assert allocation.admitted_bps == pytest.approx(10e6, rel=1e-12)
    assert allocation.gap == pytest.approx(0.0, abs=1e-12)


def test_a_wrong_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 8e6, 3e6)
    with pytest.raises(SolverError, match=r"over a limit by 1e\+06 bit/s"):
        solve(PROBLEM, engine="given")


def test_a_poor_answer_shows_in_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, 5e6, 0.0)
    allocation = solve(PROBLEM, engine="given")
    assert allocation.gap == pytest.approx(0.5)
    assert allocation.paths["g"] == ()
    assert allocation.rate_bps("f") == 5e6
