"""New flows: granted or refused, each by itself, though those that come together may share a solve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile

from controller.decide.admission import Wanted, admit
from controller.decide.component import Component, Context
from controller.decide.granting import Granted, grant, grant_shared, may_share
from controller.decide.live_optima import LiveOptima
from controller.decide.notifications import notify_refused, refuse
from controller.decide.planning import optimise_new_flows
from controller.decide.rates import Rates
from controller.errors import FAILURES, AnyFailure, DeadlineExceeded, Unavailable, key_of_another
from controller.model.events import FlowRequested
from controller.state.flow import Flow

_MAX_IN_SOLVE = 64
"""Requests that share a solve, at most: it takes longer the more there are."""


class Arrivals(Component):
    """Routes new flows, and begins to install their paths.

    `install` begins to install the rules of a flow, for which a client waits: (flow, its token).
    """

    def __init__(
        self,
        shared: Context,
        optima: LiveOptima,
        rates: Rates,
        install: Callable[[Flow, int], None],
        new_flow_id: Callable[[int], str],
    ) -> None:
        super().__init__(shared)
        self._optima = optima
        self._rates = rates
        self._install = install
        self._new_flow_id = new_flow_id

    def request_all(self, requested: Sequence[FlowRequested], now: float) -> tuple[FlowRequested, ...]:
        """Route new flows in order; from the first that takes a solve on, they share it as far as they can.

        Returns those that remain, so what is urgent waits for one solve at most.
        """
        for index, event in enumerate(requested):
            if not self.request(event, now, may_solve=False):
                return self._request_sharing(requested[index:], now)
        return ()

    def request(self, event: FlowRequested, now: float, may_solve: bool = True) -> bool:
        """Route a new flow, take its rates in and begin to install its paths.

        Returns whether that is done: not if it takes a solve that may not be.
        """
        try:
            _check_deadline(event, now)
            number = self._state.flows.last_number + 1
            flow_id, is_settled = self._new_flow_id(number), self._rates.is_settled
            with self._solving_until(event.deadline, now):
                granted = grant(
                    self._state, self._optima, event.request, flow_id, number, is_settled, may_solve
                )
            if granted is None:
                return False
            self._take_in(granted, event, now)
        except FAILURES as error:
            self._refuse(event, error)
        return True

    def _request_sharing(self, requested: Sequence[FlowRequested], now: float) -> tuple[FlowRequested, ...]:
        """Route new flows by one solve, up to the first that cannot share it; returns that and the others."""
        objective = self._objective(requested[0])

        def shares(event: FlowRequested) -> bool:
            return self._objective(event) == objective and may_share(event.request, objective)

        sharing = list(takewhile(shares, requested[:_MAX_IN_SOLVE])) or [requested[0]]
        others = requested[len(sharing) :]
        if len(sharing) > 1:
            wanted = self._wanted(sharing, now)
            if not wanted or (len(wanted) > 1 and self._solve_for(wanted, objective, now)):
                return tuple(others)
            sharing = [event for _, event in wanted]
        first, *rest = sharing
        self.request(first, now)
        return (*rest, *others)

    def _objective(self, event: FlowRequested) -> str:
        return event.request.objective or self._state.settings.objective

    def _wanted(self, requested: Sequence[FlowRequested], now: float) -> list[tuple[Wanted, FlowRequested]]:
        """Return the requests that make sense by now; the others are refused."""
        wanted = []
        for number, event in enumerate(requested, self._state.flows.last_number + 1):
            try:
                _check_deadline(event, now)
                wanted.append((admit(self._state, event.request, self._new_flow_id(number), number), event))
            except FAILURES as error:  # noqa: PERF203
                self._refuse(event, error)
        return wanted

    def _solve_for(self, wanted: Sequence[tuple[Wanted, FlowRequested]], objective: str, now: float) -> bool:
        """Grant or refuse requests by one solve; returns whether that could be solved."""
        deadlines = [event.deadline for _, event in wanted if event.deadline is not None]
        new_flows = [each.new_flow() for each, _ in wanted]
        try:
            with self._solving_until(min(deadlines, default=None), now):
                rates, paths = optimise_new_flows(self._state, self._optima, objective, new_flows)
        except FAILURES:
            return False  # one of them may be at fault: each by itself then
        self._rates.apply(rates, now)
        for each, event in wanted:
            try:
                self._take_in(grant_shared(self._state, each, paths[each.id]), event, now)
            except FAILURES as error:  # noqa: PERF203
                self._refuse(event, error)
                if paths[each.id]:
                    self._rates.capacity_returned(now)  # what it does not take is free for the others
        return True

    @contextmanager
    def _solving_until(self, deadline: float | None, now: float) -> Iterator[None]:
        """Let solves take no longer than the client has time, and than is configured."""
        limit_s = self._state.settings.solve_limit_s
        self._optima.time_limit_s = limit_s if deadline is None else min(limit_s, deadline - now)
        try:
            yield
        finally:
            self._optima.time_limit_s = limit_s

    def is_repeated(self, event: FlowRequested, now: float) -> bool:
        """Answer a request that was granted before, as by another replica; returns whether it was."""
        if event.repeated_as is None:
            return False
        key, digest = event.repeated_as
        flow = self._state.flows.with_key(event.caller.name, key)
        if flow is None or not flow.is_active or flow.repeated_as is None:
            return False
        if flow.repeated_as[1] != digest:
            self._outbox.answer(event.token, key_of_another())
        else:
            self._outbox.answer(event.token, self._state.view(flow, now))
        return True

    def _take_in(self, granted: Granted, event: FlowRequested, now: float) -> None:
        """Let a flow begin that was granted."""
        flow = granted.flow
        flow.expires_at = now + flow.lease_s
        flow.owner, flow.belongs_to = event.owner, event.caller.name
        flow.repeated_as = event.repeated_as
        absent = [switch for switch in flow.switches() if not self._state.live.is_connected(switch)]
        if absent:
            raise Unavailable("", f"the connection to {', '.join(absent)} ended a moment ago; ask again")
        self._state.flows.last_number = flow.number
        self._state.flows.add(flow)
        self._rates.apply(granted.rates, now)
        if flow.split is not None:
            flow.split.group = flow.group(self._state.live.ports)
        self._install(flow, event.token)

    def _refuse(self, event: FlowRequested, error: AnyFailure) -> None:
        refusal = refuse(self._outbox, event.token, error)
        request = event.request
        notify_refused(self._outbox, request.source, request.destination, refusal, event.caller.name)


def _check_deadline(event: FlowRequested, now: float) -> None:
    if event.deadline is not None and event.deadline <= now:
        raise DeadlineExceeded("", "the time for the request was over before it was its turn")
