"""What `mstcp-lab solve` adds to an allocation in what is left of the time: events, failures, backups."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from gomr import Engine
from gomr.backups import backup_paths
from gomr.engines.time_budget import OutOfTime
from gomr.failures import Survey, survey_failures

from experiments.routing.case import RoutingCase
from experiments.routing.document import Solved
from experiments.routing.events import failures_of, measure_events
from experiments.routing.time_limit import TimeLimit

_SURVEY_SHARE = 0.9
"""Share of the time that is left; the rest is for the backups."""
_MORE = "give more by --time-limit"


def add_event_times(
    solved: Solved, case: RoutingCase, live: Engine, count: int, seed: int, time_limit: TimeLimit
) -> Solved:
    """Return what was solved with the times of events, and a note where time was short of all of them."""
    events = None
    if not time_limit.is_up:
        events = measure_events(live, solved.problem, case.arriving, count, seed, time_limit)
    measured = 0 if events is None else len(events.flow_ms)
    notes = solved.notes
    if measured < count:
        notes += (f"the time was up after {measured} of {count} flow events; {_MORE}",)
    return replace(solved, events=events, notes=notes)


def add_contingencies(solved: Solved, kinds: str, objective: str, time_limit: TimeLimit) -> Solved:
    """Return what was solved with failures and backups, and notes on what there was no time for."""
    survey = _survey(solved, kinds, objective, time_limit)
    backups = tuple(
        takewhile(lambda _: not time_limit.is_up, backup_paths(solved.problem, solved.allocation))
    )
    notes = []
    if survey is None:
        notes.append(f"the time was up before the failures could be surveyed; {_MORE}")
    if time_limit.is_up and len(backups) < solved.path_count:
        notes.append(f"the time was up after the backups of {len(backups)} of {solved.path_count} paths")
    return replace(solved, survey=survey, backups=backups, notes=(*solved.notes, *notes))


def _survey(solved: Solved, kinds: str, objective: str, time_limit: TimeLimit) -> Survey | None:
    """Return the survey; None where the time was up before it could begin."""
    if time_limit.is_up:
        return None
    left_s = time_limit.rest_s
    failures = failures_of(solved.problem, kinds)
    try:
        return survey_failures(
            solved.problem,
            failures,
            objective,
            time_limit_s=None if left_s is None else _SURVEY_SHARE * left_s,
        )
    except OutOfTime:
        return None
