import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from queue import Queue
from typing import Any

import pytest

import topologies
from controller.api.schema import parse
from controller.core import Core
from controller.errors import Unavailable
from controller.loop import ControllerLoop
from controller.model.events import (
    BarrierReceived,
    CopyRequested,
    Event,
    FlowRequested,
    LeaseRenewed,
    PacketArrived,
    RequestAbandoned,
    SwitchConnected,
    TimePassed,
)
from controller.model.messages import (
    Acknowledge,
    ClientMessage,
    CloseConnection,
    InstallRules,
    Message,
    Notify,
    Reply,
)
from controller.model.settings import Settings
from controller.model.state_copy import StateCopy


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


def run(core: SlowCore, *events: Event) -> list[Reply | Notify]:
    delivered: list[Reply | Notify] = []
    done = threading.Event()

    def deliver(*messages: ClientMessage) -> None:
        delivered.extend(each for each in messages if isinstance(each, Reply | Notify))
        if any(isinstance(each, Reply) and each.token == 99 for each in messages):
            done.set()

    loop = ControllerLoop(core, lambda message: None, deliver, clock=lambda: 100.0)
    loop.start()
    for event in events:
        loop.post(event)
        assert core.busy.wait(10)  # with the first one; the others queue up
    loop.post(CopyRequested(99))
    core.go_on.set()
    assert done.wait(10)
    loop.stop()
    return delivered


def test_what_switches_say_is_heard_before_more_is_asked_of_them() -> None:
    core = SlowCore()
    first, second = CopyRequested(1), CopyRequested(2)
    barrier, renewal = BarrierReceived(1, 1), LeaseRenewed(3, ())
    run(core, first, second, barrier, renewal)
    assert core.seen == [first, barrier, renewal, second, CopyRequested(99)]


def test_a_deadline_is_checked_after_what_came_before_it() -> None:
    first, barrier = CopyRequested(1), BarrierReceived(1, 1)

    class Overdue(SlowCore):
        def handle(self, event: Event, now: float) -> list[Message]:
            if event == first:
                self.due = 50.0  # long past when this event is done
            return super().handle(event, now)

    core = Overdue()
    run(core, first, barrier)
    assert core.seen == [first, barrier, TimePassed(), CopyRequested(99)]


def test_a_fault_of_the_core_is_told_to_who_waits_and_does_not_end_the_loop(caplog: Any) -> None:
    class Faulty(SlowCore):
        def handle(self, event: Event, now: float) -> list[Message]:
            if event == CopyRequested(1):
                self.busy.set()
                raise ZeroDivisionError
            return super().handle(event, now)

    answers = run(Faulty(), CopyRequested(1))
    assert isinstance(answers[0], Reply)
    assert "ZeroDivisionError" in str(answers[0].result)
    assert "handling CopyRequested failed" in caplog.text


@contextmanager
def running(core: Any, **arguments: Any) -> Iterator[tuple[ControllerLoop, "Queue[Reply | Notify]"]]:
    """Yield a loop that runs, held up by its first event if its core is slow, and what it answers."""
    answers: Queue[Reply | Notify] = Queue()
    settings: dict[str, Any] = {"send": lambda message: None, "deliver": answers.put, **arguments}
    loop = ControllerLoop(core, **settings)
    loop.start()
    if isinstance(core, SlowCore):
        loop.post(CopyRequested(0))
        assert core.busy.wait(10)
    yield loop, answers
    loop.stop()


class Panic(BaseException):
    """As a panic of the compiled engine: no Exception."""


def test_a_panic_is_told_to_who_waits_and_does_not_end_the_loop() -> None:
    class Panicking(Core):
        def handle(self, event: Event, now: float) -> list[Message]:
            if event == CopyRequested(1):
                raise Panic
            return super().handle(event, now)

    with running(Panicking(topologies.load("butterfly"), Settings())) as (loop, answers):
        for token in (1, 2):
            loop.post(CopyRequested(token))
        assert "Panic" in str(getattr(answers.get(timeout=10), "result", None))
        assert isinstance(getattr(answers.get(timeout=10), "result", None), StateCopy)


def test_what_cannot_be_sent_ends_the_connection_and_not_the_loop() -> None:
    sent: list[Any] = []

    def send(message: Any) -> None:
        sent.append(message)
        if isinstance(message, InstallRules):
            raise OverflowError

    with running(Core(topologies.load("butterfly"), Settings()), send=send) as (loop, answers):
        loop.post(SwitchConnected(1, frozenset({1, 2, 3})))
        loop.post(CopyRequested(1))
        answers.get(timeout=10)
    assert [type(message) for message in sent[:3]] == [Acknowledge, InstallRules, CloseConnection]
    assert sent[2].datapath_id == 1


def test_an_event_of_a_switch_that_fails_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    core = Core(topologies.load("butterfly"), Settings())
    monkeypatch.setattr(core._state.live, "connect", lambda *_: 1 / 0)
    with running(core, send=sent.append) as (loop, answers):
        loop.post(SwitchConnected(1, frozenset({1})))
        loop.post(CopyRequested(1))
        answers.get(timeout=10)
    assert [type(message) for message in sent] == [CloseConnection]


def test_what_is_due_and_fails_again_and_again_ends_the_loop_with_a_reason() -> None:
    class Stuck(Core):
        def next_deadline(self) -> float | None:
            return -1.0

        def handle(self, event: Event, now: float) -> list[Message]:
            raise ZeroDivisionError

    times = count(0.0, 10.0)
    failures: Queue[str] = Queue()
    core = Stuck(topologies.load("butterfly"), Settings())
    with running(core, clock=lambda: next(times), on_failure=failures.put):
        assert "ZeroDivisionError" in failures.get(timeout=10)


def test_packets_of_hosts_are_dropped_and_requests_refused_where_there_is_no_room() -> None:
    core = SlowCore()
    with running(core) as (loop, answers):
        for _ in range(20_000):
            loop.post(PacketArrived(1, 1, b"x"))
        for token in range(1, 6001):
            loop.post(CopyRequested(token))
        refused = [answers.get(timeout=10) for _ in range(6000 - 4096)]
        assert all(isinstance(getattr(answer, "result", None), Unavailable) for answer in refused)
        assert loop.dropped_packets == 20_000 - 1024
        loop.post(LeaseRenewed(7000, ()))
        core.go_on.set()
        answers.get(timeout=10)
        assert getattr(answers.get(timeout=10), "token", None) == 7000, (
            "a lease waits for no packet or request"
        )


def test_requests_and_packets_take_turns() -> None:
    core = SlowCore()
    with running(core) as (loop, answers):
        for number in range(100):
            loop.post(PacketArrived(1, 1, b"%d" % number))
            loop.post(CopyRequested(1 + number))
        core.go_on.set()
        for _ in range(101):
            answers.get(timeout=10)
    first_requests = [i for i, event in enumerate(core.seen) if isinstance(event, CopyRequested)][1:4]
    assert first_requests[0] <= 33
    assert first_requests[1] - first_requests[0] <= 33


def test_a_request_that_its_client_gave_up_is_not_served() -> None:
    core = SlowCore()
    with running(core) as (loop, answers):
        request = parse({"source": "T0", "destination": "T2", "destination_port": 1, "rate_bps": 1.0})
        loop.post(FlowRequested(1, request))
        loop.post(RequestAbandoned(1))
        assert getattr(answers.get(timeout=10), "token", None) == 1
        core.go_on.set()
        answers.get(timeout=10)
    assert core.seen == [CopyRequested(0)]


def test_time_that_planning_is_to_take_passes_after_requests_alone() -> None:
    core = SlowCore()
    core.go_on.set()
    paused: Queue[float] = Queue()
    with running(core, planning_s=0.5, pause=paused.put) as (loop, answers):
        loop.post(CopyRequested(1))
        answers.get(timeout=10)
        request = parse({"source": "T0", "destination": "T2", "destination_port": 1, "rate_bps": 1.0})
        loop.post(FlowRequested(2, request))
        assert paused.get(timeout=10) == 0.5
    assert paused.empty()
