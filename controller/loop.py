"""Runs the core: bounded queues, one thread, and every message to where it belongs."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from types import UnionType
from typing import Any, Protocol

from controller.errors import Fenced, NotLeading, RequestError, StoreError, Unavailable
from controller.model.client_events import ClientEvent
from controller.model.event_log import EventLog
from controller.model.events import (
    BarrierReceived,
    CopyRequested,
    Event,
    FlowChanged,
    FlowRequested,
    FlowsRequested,
    LinkDiscovered,
    PacketArrived,
    RecordsChanged,
    RecordsRead,
    RequestAbandoned,
    TimePassed,
    Together,
    ViewRequested,
)
from controller.model.messages import (
    ClientMessage,
    CloseConnection,
    DatapathMessage,
    Message,
    Postpone,
    Reply,
    Report,
)
from controller.model.records import RecordChange

LOG = logging.getLogger("controller")

_MAX_REQUESTS = 4096
_MAX_PACKETS = 1024
_PACKETS_A_TURN = 32
"""Packets that are handled between two requests: neither waits for all of the others."""

_MAX_TOGETHER = 256
"""Events handled as one, at most: what is urgent waits for no more."""

_MAX_TIMER_FAILURES = 5
_TIMER_PAUSE_S = 1.0
"""A timer event that fails is retried after the pause; after this many failures the process ends."""


_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

_REQUESTS = FlowRequested | FlowChanged | ViewRequested | FlowsRequested | CopyRequested
_FREQUENT = BarrierReceived | LinkDiscovered
"""What switches send by the thousand, and what needs no solve."""


class Deliver(Protocol):
    """Takes messages for clients."""

    def __call__(self, *messages: ClientMessage) -> None:
        """Take those of an event, from any thread."""


class _Kind(Enum):
    """How urgent an event is; each kind has a queue."""

    URGENT = 0  # what switches confirm or lose, leases, releases: short, and bounded by what was asked
    REQUEST = 1  # takes time to solve; at most `_MAX_REQUESTS`, further ones are refused
    PACKET = 2  # from hosts, as many as they like; at most `_MAX_PACKETS`, further ones are dropped


def _kind(event: Event) -> _Kind:
    if isinstance(event, PacketArrived):
        return _Kind.PACKET
    if isinstance(event, _REQUESTS):
        return _Kind.REQUEST
    return _Kind.URGENT


def _together(queue: deque[Event], kind: UnionType | type[Event]) -> Event:
    """Take the first event of a queue, with those of this kind that come right after one of it."""
    first = queue.popleft()
    if not isinstance(first, kind) or not queue or not isinstance(queue[0], kind):
        return first
    events: list[Any] = [first]
    while queue and isinstance(queue[0], kind) and len(events) < _MAX_TOGETHER:
        events.append(queue.popleft())
    return Together(tuple(events))


class EventHandler(Protocol):
    """The core, as the loop sees it."""

    def handle(self, event: Event, now: float) -> list[Message]:
        """Take an event in."""

    def sent(self, now: float) -> None:
        """Record that the messages of the last event have been sent."""

    def next_deadline(self) -> float | None:
        """Return the time at which a `TimePassed` is due."""


class ControllerLoop:
    """Takes events from any thread and hands them to the core one by one.

    An event that fails changes nothing, and its client is told. If it came from a switch, the connection to
    it is ended, so that it comes back and what it has is compared with what it should have. What fails again
    and again, or ends the thread, is told to `on_failure`.

    Args:
        core: The core; from `start` on it belongs to the loop's thread.
        send: Carries out a message to a switch, at the latest with `flush`; called from the loop's thread.
            Must not wait.
        deliver: Takes what is for clients, all of an event at once; called from any thread.
        clock: Seconds, monotonic.
        flush: Carries out all messages to switches, after those of one event.
        write: Takes records that must survive a restart, before any client hears of what they say.
        on_failure: Called once, with a sentence, when the core cannot go on.
        planning_s: What planning a request takes in addition: for clocks on which processing takes no time.
        pause: Lets a number of seconds pass.
        handled: Called with each event and the seconds that the core took for it.
        on_fenced: Called where the store does not obey this replica: nothing of the event is carried out.
        wall_clock: Seconds since 1970.
    """

    def __init__(
        self,
        core: EventHandler,
        send: Callable[[DatapathMessage], None],
        deliver: Deliver,
        clock: Callable[[], float] = time.monotonic,
        flush: Callable[[], None] = lambda: None,
        write: Callable[[Sequence[RecordChange]], None] = lambda _: None,
        on_failure: Callable[[str], None] = lambda _: None,
        planning_s: float = 0.0,
        pause: Callable[[float], None] = time.sleep,
        handled: Callable[[Event, float], None] = lambda *_: None,
        on_fenced: Callable[[], None] = lambda: None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._core = core
        self._send = send
        self._deliver = deliver
        self._clock = clock
        self._flush = flush
        self._write = write
        self._on_failure = on_failure
        self._planning_s = planning_s
        self._pause = pause
        self._handled = handled
        self._on_fenced = on_fenced
        self._wall_clock = wall_clock
        self._log = EventLog()
        self._queues: dict[_Kind, deque[Event]] = {kind: deque() for kind in _Kind}
        self._packets_left = _PACKETS_A_TURN
        self.dropped_packets = 0  # of hosts, because too many waited
        self._timer_failures = 0
        self._timer_paused_until: float | None = None
        self._stopping = False
        self._last: Event | None = None
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="controller-core", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def post(self, *events: Event) -> None:
        """Put events in their queues; where one is full, a packet is dropped and a request refused."""
        refused: list[tuple[Event, str]] = []
        with self._arrived:
            for event in events:
                kind = _kind(event)
                queue = self._queues[kind]
                if isinstance(event, RequestAbandoned) and self._forget(event.token):
                    refused.append((event, "the client gave up before it was served"))
                elif kind is _Kind.PACKET and len(queue) >= _MAX_PACKETS:
                    self.dropped_packets += 1
                elif kind is _Kind.REQUEST and len(queue) >= _MAX_REQUESTS:
                    refused.append((event, f"{_MAX_REQUESTS} requests wait already; ask again later"))
                else:
                    queue.append(event)
            self._arrived.notify()
        for event, reason in refused:
            self._answer(event, Unavailable("", reason))

    def _forget(self, token: int) -> bool:
        """Take back a request that has not been handled yet."""
        requests = self._queues[_Kind.REQUEST]
        for event in requests:
            if isinstance(event, FlowRequested) and event.token == token:
                requests.remove(event)
                return True
        return False

    def stop(self, last: Event | None = None) -> None:
        """End after the event in hand and, if one is given, a last one."""
        with self._arrived:
            self._stopping = True
            self._last = last
            self._arrived.notify()
        self._thread.join()

    def queue_lengths(self) -> dict[str, int]:
        """Return how many events of each kind wait."""
        return {kind.name.lower(): len(queue) for kind, queue in self._queues.items()}

    def _run(self) -> None:
        try:
            while (event := self._next()) is not None:
                self._handle(event)
            if self._last is not None:
                self._handle(self._last)
        except BaseException as error:
            LOG.exception("the core's thread ended")
            self._on_failure(f"the core's thread ended: {type(error).__name__}: {error}")

    def _next(self) -> Event | None:
        """Wait for what comes next: urgent events, the core's deadline, then requests and packets in turn."""
        urgent, requests, packets = (self._queues[kind] for kind in _Kind)
        with self._arrived:
            while not self._stopping:
                if urgent:
                    return _together(urgent, _FREQUENT)
                left_s = self._deadline_in_s()
                if left_s is not None and left_s <= 0:
                    return TimePassed()
                if packets and (self._packets_left > 0 or not requests):
                    self._packets_left -= 1
                    return packets.popleft()
                if requests:
                    self._packets_left = _PACKETS_A_TURN
                    return _together(requests, FlowRequested)
                self._arrived.wait(left_s)
        return None

    def _deadline_in_s(self) -> float | None:
        deadline = self._core.next_deadline()
        if deadline is None:
            return None
        return max(deadline, self._timer_paused_until or deadline) - self._clock()

    def _handle(self, event: Event) -> None:
        began = self._clock()
        if isinstance(event, RecordsRead | RecordsChanged):
            self.remember(event.changes)
        try:
            messages = self._core.handle(event, began)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # a panic of the compiled engine is no Exception
            if isinstance(event, Together):
                for each in event.events:  # the others are none the worse for the one that fails
                    self._handle(each)
                return
            LOG.exception("handling %s failed; nothing was changed", type(event).__name__)
            self._failed(event, error)
            return
        if isinstance(event, TimePassed):
            self._timer_failures, self._timer_paused_until = 0, None
        if self._planning_s and (planned := _planned(event, messages)):
            self._pause(self._planning_s * planned)
        self.carry_out(messages)
        now = self._clock()
        self._core.sent(now)
        self._handled(event, now - began)

    def remember(self, changes: Iterable[RecordChange]) -> None:
        """Tell clients what the store has of events that were told before, or by another replica."""
        self._deliver(*self._log.follow(changes))

    def carry_out(self, messages: list[Message]) -> None:
        """Write what must survive first, then carry the other messages out in order."""
        told = self._log.numbered(messages, self._wall_clock())
        if not self._write_changes(messages, told):
            messages, told = refusals(messages), []
        self._log.took(told)
        following = iter(told)
        for_clients: list[ClientMessage] = []
        for message in messages:
            if isinstance(message, DatapathMessage):
                self._send_or_close(message)
            elif isinstance(message, Report):
                LOG.log(_LEVELS[message.level], message.text, extra={"data": message.data})
                if message.kind is not None:
                    for_clients.append(next(following))
            elif isinstance(message, Postpone):
                with self._arrived:
                    self._queues[_Kind.REQUEST].extendleft(reversed(message.events))
            elif not isinstance(message, RecordChange):
                for_clients.append(message)
        self._flush()
        if for_clients:
            self._deliver(*for_clients)

    def _write_changes(self, messages: list[Message], told: list[ClientEvent]) -> bool:
        """Write what must survive; returns False where the store does not obey this replica."""
        changes = [message for message in messages if isinstance(message, RecordChange)]
        changes += self._log.records(told)
        try:
            if changes:
                self._write(changes)
        except Fenced as error:
            LOG.error("%s; nothing of what was to be changed is", error)
            self._on_fenced()
            return False
        except StoreError as error:
            LOG.error("%s; after a restart, what was changed would be forgotten", error)
        return True

    def _failed(self, event: Event, error: BaseException) -> None:
        reason = f"the controller failed on this request ({type(error).__name__}); its log says more"
        self._answer(event, Unavailable("", reason))
        datapath_id = getattr(event, "datapath_id", None)
        if datapath_id is not None and _kind(event) is _Kind.URGENT:
            self._send_or_close(CloseConnection(datapath_id, "an event of this switch could not be handled"))
        if isinstance(event, TimePassed):
            self._timer_failures += 1
            self._timer_paused_until = self._clock() + _TIMER_PAUSE_S
            if self._timer_failures >= _MAX_TIMER_FAILURES:
                raise error

    def _answer(self, event: Event, error: RequestError) -> None:
        token = getattr(event, "token", None)
        if token is not None:
            self._deliver(Reply(token, error))

    def _send_or_close(self, message: DatapathMessage) -> None:
        """Send to a switch; where that fails, its connection is ended and it begins again."""
        try:
            self._send(message)
        except Exception as error:
            LOG.exception("%s could not be sent", type(message).__name__)
            if not isinstance(message, CloseConnection):
                reason = f"a message could not be sent ({type(error).__name__})"
                self._send_or_close(CloseConnection(message.datapath_id, reason))


def refusals(messages: list[Message]) -> list[Message]:
    """Return what is left of an event's messages where the store does not obey: who waits is told."""
    kept = (message for message in messages if isinstance(message, Reply | Postpone))
    return [Reply(each.token, NotLeading()) if isinstance(each, Reply) else each for each in kept]


def _planned(event: Event, messages: list[Message]) -> int:
    """Return how many requests have been planned with an event."""
    if isinstance(event, Together):
        postponed = sum(len(message.events) for message in messages if isinstance(message, Postpone))
        return sum(isinstance(each, FlowRequested) for each in event.events) - postponed
    return int(isinstance(event, FlowRequested | FlowChanged))
