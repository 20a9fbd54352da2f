"""Failures ahead: each outcome is what a solve of the broken network finds, and every bound holds."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from gomr import Demand, Problem, from_network
from gomr.backups import backup_paths
from gomr.demands import Traffic
from gomr.failures import link_failures, node_failures, survey_failures
from gomr.load import at_load
from gomr.solving import allocate

import topologies


def problem(spec: str, flows: int, load: float) -> Problem:
    network = topologies.load(spec)
    return at_load(from_network(network, Traffic("gravity", network.hosts, 1).flows(flows)), load)


def without(problem: Problem, edges: tuple[str, ...]) -> Problem:
    kept = tuple(replace(edge, capacity_bps=0.0) if edge.id in edges else edge for edge in problem.edges)
    return replace(problem, edges=kept)


@pytest.mark.parametrize("objective", ["max_throughput_min_delay", "fair", "even_split"])
@pytest.mark.parametrize(("spec", "flows", "load"), [("waxman:12:seed=3", 40, 1.2), ("ring:5", 15, 0.8)])
def test_an_outcome_is_the_optimum_of_the_broken_network(
    spec: str, flows: int, load: float, objective: str
) -> None:
    given = problem(spec, flows, load)
    failures = [*link_failures(given), *node_failures(given)]
    survey = survey_failures(given, failures, objective, workers=2)
    assert survey.unsolved == 0
    assert [outcome.failure for outcome in survey.outcomes] == failures
    for outcome in survey.outcomes:
        broken = allocate(without(given, outcome.failure.edges), objective)
        assert outcome.admitted_bps == pytest.approx(broken.admitted_bps, rel=1e-9)
        assert outcome.lost_bps == pytest.approx(max(0.0, survey.admitted_bps - broken.admitted_bps), abs=1.0)
    worst = survey.worst_first()
    assert all(a.lost_bps >= b.lost_bps for a, b in itertools.pairwise(worst))


def test_what_time_did_not_suffice_for_has_bounds_that_hold() -> None:
    given = problem("waxman:12:seed=3", 40, 1.2)
    failures = link_failures(given)
    exact = survey_failures(given, failures)
    ticks = itertools.count()
    # A clock that jumps once the optimum without failures is there.
    bounded = survey_failures(
        given, failures, time_limit_s=1e6, workers=1, clock=lambda: 0.0 if next(ticks) < 8 else 1e7
    )
    assert bounded.unsolved > len(failures) // 2
    for known, outcome in zip(exact.outcomes, bounded.outcomes, strict=True):
        assert outcome.admitted_bps <= known.admitted_bps * (1 + 1e-9)
        assert known.admitted_bps <= outcome.upper_bound_bps * (1 + 1e-9)


def test_a_node_takes_its_own_flows_with_it() -> None:
    network = topologies.load("line:3")
    demands = [Demand("1", "h1", "h3", 1e6), Demand("2", "h1", "h2", 2e6), Demand("3", "h2", "h2", 5e5)]
    given = from_network(network, demands)
    (middle,) = [failure for failure in node_failures(given) if failure.name == "s2"]
    (outcome,) = survey_failures(given, [middle]).outcomes
    assert outcome.admitted_bps == 5e5  # what stays at its host needs no network
    assert outcome.lost_bps == 3e6
    assert not [failure for failure in node_failures(given) if failure.name.startswith("h")]


def test_one_way_links_fail_alone() -> None:
    given = problem("ring:4", 5, 0.5)
    one_way = replace(given, reverse=None)
    assert len(link_failures(given)) * 2 == len(link_failures(one_way)) == len(given.edges)


def test_a_backup_shares_nothing_where_the_network_has_such_a_path() -> None:
    given = problem("waxman:14:seed=5", 60, 1.1)
    allocation = allocate(given)
    backups = list(backup_paths(given, allocation))
    assert len(backups) == sum(map(len, allocation.paths.values()))
    edges = given.edges_by_id
    for backup in backups:
        assert backup.nodes
        assert (backup.nodes[0], backup.nodes[-1]) == (backup.path.nodes[0], backup.path.nodes[-1])
        assert len(set(backup.nodes)) == len(backup.nodes)
        steps = [f"{a}->{b}" for a, b in itertools.pairwise(backup.nodes)]
        assert all(step in edges for step in steps)
        assert backup.delay_s == pytest.approx(sum(edges[step].delay_s for step in steps))
        own = {*backup.path.edges, *(given.reverse[edge] for edge in backup.path.edges)}  # type: ignore[index]
        assert set(backup.shared_links) == own & set(steps)
        # Only the links to the hosts have to be shared, unless the failure of a shared one cuts the flow off.
        for link in backup.shared_links:
            cut = without(given, (link, given.reverse[link]))  # type: ignore[index]
            alone = Demand("x", backup.nodes[0], backup.nodes[-1], 1.0)
            assert allocate(replace(cut, demands=(alone,))).admitted_bps == 0.0


def test_where_there_is_one_way_only_there_is_no_backup() -> None:
    given = from_network(topologies.load("line:3"), [Demand("1", "h1", "h3", 1e6)])
    (backup,) = backup_paths(given, allocate(given))
    assert backup.nodes == ()
    assert backup.shared_links == backup.path.edges
