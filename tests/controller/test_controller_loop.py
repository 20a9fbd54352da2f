import threading
from typing import Any

import topologies
from controller.core.core import Core
from controller.core.events import (
    BarrierReceived,
    Event,
    LeaseRenewed,
    SnapshotRequested,
    TimePassed,
)
from controller.core.messages import Answer, Message, Notify
from controller.core.state import Settings
from controller.loop import ControllerLoop


class SlowCore(Core):
    """Stops at the first event until it is let go on, and keeps the order of all; `due`: its deadline."""

    def __init__(self, due: float | None = None) -> None:
        super().__init__(topologies.load("butterfly"), Settings())
        self.due = due
        self.seen: list[Event] = []
        self.busy = threading.Event()
        self.go_on = threading.Event()

    def handle(self, event: Event, now: float) -> list[Message]:
        self.seen.append(event)
        self.busy.set()
        assert self.go_on.wait(10)
        if isinstance(event, TimePassed):
            self.due = None
        return super().handle(event, now)

    def next_deadline(self) -> float | None:
        return self.due


def run(core: SlowCore, *events: Event) -> list[Answer | Notify]:
    delivered: list[Answer | Notify] = []
    done = threading.Event()

    def deliver(message: Answer | Notify) -> None:
        delivered.append(message)
        if isinstance(message, Answer) and message.token == 99:
            done.set()

    loop = ControllerLoop(core, lambda message: None, deliver, clock=lambda: 100.0)
    loop.start()
    for event in events:
        loop.post(event)
        assert core.busy.wait(10)  # with the first one; the others queue up
    loop.post(SnapshotRequested(99))
    core.go_on.set()
    assert done.wait(10)
    loop.stop()
    return delivered


def test_what_switches_say_is_heard_before_more_is_asked_of_them() -> None:
    core = SlowCore()
    first, second = SnapshotRequested(1), SnapshotRequested(2)
    barrier, renewal = BarrierReceived(1, 1), LeaseRenewed(3, ())
    run(core, first, second, barrier, renewal)
    assert core.seen == [first, barrier, renewal, second, SnapshotRequested(99)]


def test_a_deadline_is_checked_after_what_came_before_it() -> None:
    first, barrier = SnapshotRequested(1), BarrierReceived(1, 1)

    class Overdue(SlowCore):
        def handle(self, event: Event, now: float) -> list[Message]:
            if event == first:
                self.due = 50.0  # long past when this event is done
            return super().handle(event, now)

    core = Overdue()
    run(core, first, barrier)
    assert core.seen == [first, barrier, TimePassed(), SnapshotRequested(99)]


def test_a_fault_of_the_core_is_told_to_who_waits_and_does_not_end_the_loop(caplog: Any) -> None:
    class Faulty(SlowCore):
        def handle(self, event: Event, now: float) -> list[Message]:
            if event == SnapshotRequested(1):
                self.busy.set()
                raise ZeroDivisionError
            return super().handle(event, now)

    answers = run(Faulty(), SnapshotRequested(1))
    assert isinstance(answers[0], Answer)
    assert "ZeroDivisionError" in str(answers[0].result)
    assert "handling SnapshotRequested failed" in caplog.text
