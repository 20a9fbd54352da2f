"""Runs the core: one queue, one thread, and every message to where it belongs."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from controller.core.core import Core
from controller.core.events import (
    Event,
    FlowChanged,
    FlowReleased,
    FlowRequested,
    SnapshotRequested,
    TimePassed,
)
from controller.core.messages import Answer, DatapathMessage, Message, Notify, Report
from controller.errors import RequestError, Unavailable

__all__ = ["ControllerLoop"]

LOG = logging.getLogger("controller")

_PATIENT = (FlowRequested, FlowChanged, FlowReleased, SnapshotRequested)
"""Events that come after all others: computing routes takes time, and a switch whose confirmation waited in
the queue meanwhile, or a lease whose renewal did, must not be taken for dead."""


class ControllerLoop:
    """Takes events from any thread and hands them to the core one by one.

    Args:
        core: The core; from `start` on it belongs to the loop's thread.
        send: Carries out a message to a switch; called from the loop's thread.
        deliver: Takes answers and notifications for clients; called from the loop's thread.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        core: Core,
        send: Callable[[DatapathMessage], None],
        deliver: Callable[[Answer | Notify], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._core = core
        self._send = send
        self._deliver = deliver
        self._clock = clock
        self._urgent: deque[Event] = deque()
        self._patient: deque[Event] = deque()
        self._stopping = False
        self._arrived = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="controller-core", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def post(self, event: Event) -> None:
        """Put an event in the queue."""
        with self._arrived:
            (self._patient if isinstance(event, _PATIENT) else self._urgent).append(event)
            self._arrived.notify()

    def stop(self) -> None:
        """End after the event in hand."""
        with self._arrived:
            self._stopping = True
            self._arrived.notify()
        self._thread.join()

    def _run(self) -> None:
        while (event := self._next()) is not None:
            self._handle(event)

    def _next(self) -> Event | None:
        """Wait for an urgent event, else the core's deadline, else a patient event; None to end."""
        with self._arrived:
            while not self._stopping:
                if self._urgent:
                    return self._urgent.popleft()
                deadline = self._core.next_deadline()
                left_s = None if deadline is None else deadline - self._clock()
                if left_s is not None and left_s <= 0:
                    return TimePassed()
                if self._patient:
                    return self._patient.popleft()
                self._arrived.wait(left_s)
        return None

    def _handle(self, event: Event) -> None:
        try:
            messages = self._core.handle(event, self._clock())
        except Exception as error:
            # A fault of ours must not take the whole network's control down; the client that waits is told.
            LOG.exception("handling %s failed", type(event).__name__)
            token = getattr(event, "token", None)
            if token is not None:
                self._deliver(Answer(token, _internal(error)))
            return
        for message in messages:
            self._carry_out(message)

    def _carry_out(self, message: Message) -> None:
        if isinstance(message, Report):
            level = logging.getLevelName(message.level.upper())
            LOG.log(level, message.text, extra={"data": dict(message.data)})
        elif isinstance(message, Answer | Notify):
            self._deliver(message)
        else:
            self._send(message)


def _internal(error: Exception) -> RequestError:
    return Unavailable(
        "", f"the controller failed on this request ({type(error).__name__}); its log says more"
    )
