"""The log of what a page is told: a reader who comes back has missed nothing that lasts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from experiments.web.event_log import MIN_SAMPLES, VALUES_KEPT, EventLog

LASTING, SAMPLE, LATEST, FORGET = "lasting", "sample", "latest", "forget"
STEPS = st.lists(
    st.tuples(st.sampled_from((LASTING, SAMPLE, LATEST, FORGET)), st.integers(1, 3)), max_size=60
)


@dataclass
class Reader:
    """A page: keeps what it was told, and asks for the rest from there on."""

    told: list[dict[str, Any]] = field(default_factory=list)
    last: int = 0

    def read(self, log: EventLog) -> None:
        while entries := log.after(self.last, most=7):
            numbers = [entry.number for entry in entries]
            assert numbers == sorted(set(numbers))
            assert numbers[0] > self.last
            self.last = numbers[-1]
            self.told += [json.loads(entry.text) for entry in entries]


def apply(log: EventLog, step: str, run: int, value: int) -> None:
    told = {"kind": step, "run": run, "value": value}
    if step == LASTING:
        log.add(told)
    elif step == SAMPLE:
        log.add_sample(run, told, values=1)
    elif step == LATEST:
        log.add_latest(run, "time", told)
    else:
        log.drop_transient(run)
        log.add(told)


def state_of(told: list[dict[str, Any]]) -> list[Any]:
    """Return what a page shows: all that lasts, and of each run what it told since its last end."""
    lasting = [each for each in told if each["kind"] in (LASTING, FORGET)]
    passing: dict[int, list[Any]] = {}
    latest: dict[int, Any] = {}
    for each in told:
        if each["kind"] == FORGET:
            passing.pop(each["run"], None)
            latest.pop(each["run"], None)
        elif each["kind"] == SAMPLE:
            passing.setdefault(each["run"], []).append(each)
        elif each["kind"] == LATEST:
            latest[each["run"]] = each
    return [lasting, passing, latest]


@given(STEPS, st.data())
def test_a_reader_that_came_late_or_went_away_shows_the_same_as_one_that_stayed(
    steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    log, stayed, away = EventLog(), Reader(), Reader()
    for value, (step, run) in enumerate(steps):
        apply(log, step, run, value)
        stayed.read(log)
        if data.draw(st.integers(0, 4)) == 0:
            away.read(log)
    late = Reader()
    for reader in (away, late):
        reader.read(log)
        assert state_of(reader.told) == state_of(stayed.told)


def test_samples_are_bounded_by_their_values() -> None:
    log = EventLog()
    for number in range(MIN_SAMPLES + 10):
        log.add_sample(1, {"number": number}, values=VALUES_KEPT)
    kept = [json.loads(entry.text)["number"] for entry in log.after(0)]
    assert kept == list(range(10, MIN_SAMPLES + 10))


def test_what_changes_is_told_after_each_addition() -> None:
    log, calls = EventLog(), []
    log.changed = lambda: calls.append(len(log.after(0)))
    log.add({})
    log.add_sample(1, {}, values=3)
    log.add_latest(1, "time", {})
    log.add_latest(1, "time", {})
    assert calls == [1, 2, 3, 3]
