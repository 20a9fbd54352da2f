"""Whose counters are read when: evenly spread, and never more than this many messages."""

from __future__ import annotations

import itertools

import pytest

from controller.state.counter_polling import CounterPolling


def asked_within(
    polling: CounterPolling, start: float, end: float, answers: int | None
) -> list[tuple[float, int]]:
    """Let switches answer at once, with this many messages; None: never."""
    asked = []
    while (due := polling.next_deadline()) is not None and due < end:
        switch = polling.tick(max(due, start))
        if switch is not None:
            asked.append((due, switch))
            if answers is not None:
                polling.answered(switch, answers)
    return asked


@pytest.mark.parametrize(("switches", "messages"), [(5, 4), (200, 4), (20, 60)])
def test_switches_are_asked_in_turn_and_no_more_than_allowed(switches: int, messages: int) -> None:
    polling = CounterPolling(1.0, 100.0)
    for switch in range(switches):
        polling.add(switch, 0.0)
    asked = asked_within(polling, 0.0, 60.0, messages)
    counts = [sum(1 for _, each in asked if each == switch) for switch in range(switches)]
    assert max(counts) - min(counts) <= 1
    assert len(asked) * messages <= 100 * 60 + 2 * messages
    expected = min(60 * switches, 100 * 60 // messages)
    assert len(asked) == pytest.approx(expected, rel=0.05)
    gaps = [b - a for (a, _), (b, _) in itertools.pairwise(asked)]
    assert max(gaps) <= 1.01 * (1 / switches + messages / 100), "evenly spread"


def test_a_switch_that_does_not_answer_is_not_asked_again() -> None:
    polling = CounterPolling(1.0, 100.0)
    polling.add(1, 0.0)
    polling.add(2, 0.0)
    assert sorted(switch for _, switch in asked_within(polling, 0.0, 10.0, None)) == [1, 2]
    polling.answered(1, 4)
    assert {switch for _, switch in asked_within(polling, 10.0, 20.0, None)} == {1}
    polling.add(2, 20.0)  # it has connected again
    assert {switch for _, switch in asked_within(polling, 20.0, 30.0, None)} == {2}


def test_a_stall_is_not_made_up_for() -> None:
    polling = CounterPolling(1.0, 100.0)
    polling.add(1, 0.0)
    assert polling.tick(0.0) == 1
    polling.answered(1, 4)
    assert polling.tick(50.0) == 1
    polling.answered(1, 4)
    assert polling.tick(50.5) is None
    assert polling.tick(51.0) == 1


def test_nobody_is_asked_where_it_is_switched_off() -> None:
    polling = CounterPolling(0.0, 100.0)
    polling.add(1, 0.0)
    assert polling.next_deadline() is None
    polling.set_pace(1.0, 100.0)
    assert polling.next_deadline() is not None
    polling.remove(1)
    assert polling.next_deadline() is None
