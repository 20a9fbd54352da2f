"""The service layer: what clients can do, for every interface. REST and gRPC only translate."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from controller.core.events import (
    Event,
    FlowChanged,
    FlowReleased,
    FlowRequested,
    LeaseRenewed,
    RequestAbandoned,
    SnapshotRequested,
)
from controller.core.messages import Answer, LeaseResult, Notify
from controller.core.requests import FlowRequest
from controller.core.views import FlowView, Snapshot
from controller.errors import RequestError, Unavailable

__all__ = ["Done", "Service"]

_ANSWER_TIMEOUT_S = 30.0
"""Longer than an installation takes before the core gives it up; a guard against faults of ours."""

_T = TypeVar("_T")

Done = Callable[[Answer], None]
"""Takes an answer, in the asyncio loop."""


class Service:
    """Puts clients' wishes in the controller's queue and brings the answers back into one asyncio loop.

    Answers and notifications reach their callbacks in the order in which the core gave them.

    Args:
        post: Puts an event in the controller's queue.
        timeout_s: A request that is not answered within this is undone.
    """

    def __init__(self, post: Callable[[Event], None], timeout_s: float = _ANSWER_TIMEOUT_S) -> None:
        self._post = post
        self._timeout_s = timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tokens = count(1)
        self._waiting: dict[int, Done] = {}
        self._listeners: dict[str, Callable[[Notify], None]] = {}
        self._delivered: deque[Answer | Notify] = deque()
        self._dispatching = False

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Name the loop in which all other methods but `deliver` are called."""
        self._loop = loop

    def deliver(self, message: Answer | Notify) -> None:
        """Take a message from the core; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._delivered.append(message)
            if not self._dispatching:  # one wake-up for all that comes before it is served
                self._dispatching = True
                self._loop.call_soon_threadsafe(self._dispatch_all)

    def _dispatch_all(self) -> None:
        self._dispatching = False
        while self._delivered:
            self._dispatch(self._delivered.popleft())

    def close(self) -> None:
        """Tell everyone who waits that the controller is stopping."""
        for token in list(self._waiting):
            self._dispatch(Answer(token, Unavailable("", "the controller is stopping")))

    @property
    def waiting(self) -> int:
        """How many clients wait for an answer."""
        return len(self._waiting)

    def subscribe(self, owner: str, listener: Callable[[Notify], None]) -> None:
        """Call `listener` with the changes of the flows that this owner requests or renews."""
        self._listeners[owner] = listener

    def unsubscribe(self, owner: str) -> None:
        """Call the owner's listener no more; its flows live on until their leases run out."""
        self._listeners.pop(owner, None)

    def submit(self, event: Callable[[int], Event], done: Done) -> int:
        """Post the event that `event` makes of a token, call `done` with its answer; returns the token."""
        token = next(self._tokens)
        self._waiting[token] = done
        self._post(event(token))
        return token

    def abandon(self, token: int, undo: bool) -> None:
        """Wait no more for an answer; `undo` what was requested, unless it is answered already."""
        if token not in self._waiting:
            return
        self._waiting[token] = self._release_unwanted if undo else _ignore
        if undo:
            self._post(RequestAbandoned(token))

    def _release_unwanted(self, answer: Answer) -> None:
        """End a flow that was installed before the core heard that nobody waits for it."""
        if isinstance(answer.result, FlowView):
            self._post(FlowReleased(next(self._tokens), answer.result.flow_id))

    async def request(self, request: FlowRequest, owner: str = "") -> FlowView:
        """Return the flow once every switch has confirmed its rules.

        Raises:
            RequestError: it is refused.
        """
        return await self._ask(lambda token: FlowRequested(token, request, owner), FlowView, undo=True)

    async def change(self, flow_id: str, rate_bps: float) -> FlowView:
        """Ask for another rate (goodput, bit/s) over the paths that the flow has.

        Raises:
            RequestError: it is refused; the flow keeps what it has.
        """
        return await self._ask(lambda token: FlowChanged(token, flow_id, rate_bps), FlowView)

    async def release(self, flow_id: str) -> None:
        """End a flow; one that has ended already is no error.

        Raises:
            NotFound: there never was such a flow.
        """
        await self._ask(lambda token: FlowReleased(token, flow_id), type(None))

    async def renew(self, flow_ids: tuple[str, ...], owner: str = "") -> LeaseResult:
        """Let flows live on for another lease."""
        return await self._ask(lambda token: LeaseRenewed(token, flow_ids, owner), LeaseResult)

    async def snapshot(self) -> Snapshot:
        """Return how things are."""
        return await self._ask(SnapshotRequested, Snapshot)

    async def _ask(self, event: Callable[[int], Event], kind: type[_T], undo: bool = False) -> _T:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        token = self.submit(event, future.set_result)
        try:
            result = (await asyncio.wait_for(future, self._timeout_s)).result
        except asyncio.TimeoutError:
            self.abandon(token, undo)
            raise Unavailable("", f"the controller did not answer within {self._timeout_s:g} s") from None
        except asyncio.CancelledError:
            self.abandon(token, undo)
            raise
        if isinstance(result, RequestError):
            raise result
        assert isinstance(result, kind)
        return result

    def _dispatch(self, message: Answer | Notify) -> None:
        if isinstance(message, Answer):
            done = self._waiting.pop(message.token, None)
            if done is not None:
                done(message)
        else:
            listener = self._listeners.get(message.owner)
            if listener is not None:
                listener(message)


def _ignore(_: Answer) -> None:
    pass
