"""The service layer: what clients can do, for every interface. REST and gRPC only translate."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import TypeVar

from controller.api.event_history import EventHistory
from controller.api.metrics import Metrics
from controller.decide.preview import preview
from controller.errors import (
    FAILURES,
    DeadlineExceeded,
    InvalidRequest,
    NotFound,
    NotLeading,
    RequestError,
    Unavailable,
    flow_of_another,
    unknown_flow,
)
from controller.model.callers import UNRESTRICTED, Caller
from controller.model.client_events import ClientEvent
from controller.model.events import (
    CopyRequested,
    Event,
    FlowReleased,
    FlowRequested,
    LeaseRenewed,
    RequestAbandoned,
    ViewRequested,
)
from controller.model.messages import Abandoned, ClientMessage, LeaseResult, Notify, Reply
from controller.model.preview_views import PreviewView
from controller.model.requests import FlowRequest, PreviewRequest, ViewName
from controller.model.state_copy import StateCopy
from controller.model.views import FlowView, LinkView

_ANSWER_TIMEOUT_S = 30.0
"""Longer than an installation takes before the core gives it up; a guard against faults of ours."""

_MAX_PREVIEWS = 8
"""Previews that wait or are computed; further ones are refused."""

_PREVIEW_LIMIT_S = 20.0

_T = TypeVar("_T")

Done = Callable[[Reply], None]
"""Takes an answer, in the asyncio loop."""


class Service:
    """Puts clients' wishes in the controller's queue and brings the answers back into one asyncio loop.

    Answers, notifications and events reach their callbacks in the order in which the core gave them. `post`
    puts events in the controller's queue, side by side. A request that is not answered within `timeout_s` is
    undone.
    """

    def __init__(
        self,
        post: Callable[..., None],
        timeout_s: float = _ANSWER_TIMEOUT_S,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        store: str = "store",
    ) -> None:
        self._post_together = post
        self._held: list[Event] | None = None  # what is posted together
        self.timeout_s = timeout_s
        self.metrics = metrics or Metrics()
        self.history = EventHistory(store)
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tokens = count(1)
        self._waiting: dict[int, Done] = {}
        self._listeners: dict[str, Callable[[Notify | Abandoned], None]] = {}
        self._previews = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controller-preview")
        self._previewing = 0
        self._delivered: deque[ClientMessage] = deque()
        self._dispatching = False

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Name the loop in which all other methods but `deliver` are called."""
        self._loop = loop
        self._dispatch_all()  # what came before there was a loop

    def deliver(self, *messages: ClientMessage) -> None:
        """Take messages from the core; may be called from any thread."""
        self._delivered.extend(messages)
        loop = self._loop
        if loop is not None and not loop.is_closed() and not self._dispatching:
            self._dispatching = True  # one wake-up for all that comes before it is served
            loop.call_soon_threadsafe(self._dispatch_all)

    def _dispatch_all(self) -> None:
        self._dispatching = False
        while self._delivered:
            self._dispatch(self._delivered.popleft())

    def close(self) -> None:
        """Tell everyone who waits that the controller is stopping."""
        for token in list(self._waiting):
            self._dispatch(Reply(token, Unavailable("", "the controller is stopping")))
        self.history.close()
        self._previews.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Hand over at its end, side by side, all that is asked in this context; nothing may wait in it."""
        held: list[Event] = []
        self._held = held
        try:
            yield
        finally:
            self._held = None
            self._post_together(*held)

    def _post(self, event: Event) -> None:
        if self._held is None:
            self._post_together(event)
        else:
            self._held.append(event)

    @property
    def waiting(self) -> int:
        """How many clients wait for an answer."""
        return len(self._waiting)

    def subscribe(self, owner: str, listener: Callable[[Notify | Abandoned], None]) -> None:
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

    def submit_request(
        self,
        request: FlowRequest,
        done: Done,
        owner: str = "",
        caller: Caller = UNRESTRICTED,
        timeout_s: float | None = None,
        repeated_as: tuple[str, str] | None = None,
    ) -> int:
        """Ask for a flow; `done` is called with the answer. One not installed by `timeout_s` is undone."""
        asked_at = self._clock()
        deadline = None if timeout_s is None else asked_at + timeout_s
        timer: asyncio.TimerHandle | None = None

        def observed(answer: Reply) -> None:
            if timer is not None:
                timer.cancel()
            if isinstance(answer.result, FlowView):
                self.metrics.installed(self._clock() - asked_at)
            elif isinstance(answer.result, RequestError):
                self.metrics.refused(answer.result.code.value)
            done(answer)

        asked = request, owner, caller, deadline, repeated_as
        token = self.submit(lambda token: FlowRequested(token, *asked), observed)
        if timeout_s is not None:
            loop = asyncio.get_running_loop()
            timer = loop.call_later(timeout_s, self._give_up, token, timeout_s, observed)
        return token

    def _give_up(self, token: int, timeout_s: float, done: Done) -> None:
        """Undo a request whose time is over."""
        if token in self._waiting:
            self.abandon(token, undo=True)
            done(Reply(token, DeadlineExceeded("", f"it was not installed within {timeout_s:g} s")))

    def abandon(self, token: int, undo: bool) -> None:
        """Wait no more for an answer; `undo` what was requested, unless it is answered already."""
        if token not in self._waiting:
            return
        self._waiting[token] = self._release_unwanted if undo else _ignore
        if undo:
            self._post(RequestAbandoned(token))

    def _release_unwanted(self, answer: Reply) -> None:
        """End a flow that was installed before the core heard that nobody waits for it."""
        if isinstance(answer.result, FlowView):
            self._post(FlowReleased(next(self._tokens), answer.result.flow_id))

    async def request(
        self,
        request: FlowRequest,
        caller: Caller = UNRESTRICTED,
        timeout_s: float | None = None,
        repeated_as: tuple[str, str] | None = None,
    ) -> tuple[FlowView, str]:
        """Return the flow once every switch has confirmed its rules; undo it if nobody waits any more.

        With it comes the id of the last event that is in the answer already, as of `ask`.

        Raises:
            DeadlineExceeded: it took longer than `timeout_s`.
            RequestError: it is refused.
        """
        if request.may_grow:
            raise InvalidRequest(
                "may_grow", "is for flows of a Session, which is told of new streams: leave it out"
            )

        def submit(done: Done) -> int:
            return self.submit_request(request, done, "", caller, timeout_s, repeated_as)

        return await self._await(submit, FlowView, undo=True)

    async def ask(
        self, event: Callable[[int], Event], kind: type[_T], timeout_s: float | None = None
    ) -> tuple[_T, str]:
        """Return the core's answer to an event, and the id of the last event that is in it already.

        `event` makes it of a token.

        Raises:
            RequestError: it is refused, or not answered in time.
        """
        return await self._await(lambda done: self.submit(event, done), kind, timeout_s=timeout_s)

    async def view(self, name: ViewName, kind: type[_T], key: str = "") -> tuple[_T, str]:
        """Return how a part of all is, as `ask`.

        Raises:
            NotFound: there is nothing called `key`.
        """
        return await self.ask(lambda token: ViewRequested(token, name, key), kind)

    async def renew_one(self, flow_id: str, caller: Caller = UNRESTRICTED) -> tuple[FlowView, str]:
        """Let a flow live on for another lease, and return it.

        Raises:
            NotFound: there is no such flow.
            Forbidden: it is another client's.
        """
        result, _ = await self.ask(lambda token: LeaseRenewed(token, (flow_id,), "", caller), LeaseResult)
        if result.forbidden:
            raise flow_of_another(flow_id)
        if result.unknown:
            raise unknown_flow(flow_id)
        return await self.view(ViewName.FLOW, FlowView, flow_id)

    async def links(self, name: str = "") -> tuple[tuple[LinkView, ...], str]:
        """Return both directions of all links, or of the one that the topology file calls `name`, either way.

        Raises:
            NotFound: there is no such link.
        """
        links: tuple[LinkView, ...]
        links, event_id = await self.view(ViewName.LINKS, tuple)
        views = tuple(view for view in links if not name or {view.tail, view.head} == set(name.split("-")))
        if name and not views:
            raise NotFound("link", f"there is no link {name!r}; GET /v1/links lists them")
        return views, event_id

    async def preview(self, wanted: PreviewRequest, limit_s: float = _PREVIEW_LIMIT_S) -> PreviewView:
        """Return what would happen; nothing does. It is computed beside the core, one after the other.

        Raises:
            RequestError: something that is named is not there, or too many wait.
        """
        if self._previewing >= _MAX_PREVIEWS:
            raise Unavailable("", f"{_MAX_PREVIEWS} previews wait already; ask again later")
        self._previewing += 1
        try:
            copy, _ = await self.ask(CopyRequested, StateCopy)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._previews, preview, copy, wanted, limit_s)
        except RequestError:
            raise
        except FAILURES as error:
            raise Unavailable("", f"it could not be computed: {error}") from None
        finally:
            self._previewing -= 1

    async def _await(
        self,
        submit: Callable[[Done], int],
        kind: type[_T],
        undo: bool = False,
        timeout_s: float | None = None,
    ) -> tuple[_T, str]:
        """Wait for an answer, and raise it if it is an error."""
        future: asyncio.Future[tuple[object, str]] = asyncio.get_running_loop().create_future()
        limit_s = min(self.timeout_s, self.timeout_s if timeout_s is None else timeout_s)
        token = submit(lambda answer: future.set_result((answer.result, self.history.last_id)))
        try:
            result, event_id = await asyncio.wait_for(future, limit_s)
        except asyncio.TimeoutError:
            self.abandon(token, undo)
            text = f"the controller did not answer within {limit_s:g} s"
            raise (Unavailable if timeout_s is None else DeadlineExceeded)("", text) from None
        except asyncio.CancelledError:
            self.abandon(token, undo)
            raise
        if isinstance(result, RequestError):
            raise result
        assert isinstance(result, kind)
        return result, event_id

    def _dispatch(self, message: ClientMessage) -> None:
        if isinstance(message, Abandoned):
            for token in list(self._waiting):
                self._dispatch(Reply(token, NotLeading()))
            for abandoned in list(self._listeners.values()):
                abandoned(message)
        elif isinstance(message, Reply):
            done = self._waiting.pop(message.token, None)
            if done is not None:
                done(message)
        elif isinstance(message, ClientEvent):
            self.metrics.happened(message.kind)
            self.history.append(message)
        else:
            listener = self._listeners.get(message.owner)
            if listener is not None:
                listener(message)


def _ignore(_: Reply) -> None:
    pass
