"""The rates that flows have: given, stored, told to their owners, and kept at the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping

from controller.decide.component import Component, Context
from controller.decide.interruptions import Interruptions
from controller.decide.live_optima import LiveOptima
from controller.decide.notifications import flow_fields
from controller.decide.planning import SEPARABLE, optimise
from controller.decide.policing import Policing
from controller.decide.rerouting import set_rates
from controller.errors import FAILURES
from controller.install.transactions import NotInstalled
from controller.model.messages import AllocationChanged, Notify
from controller.model.rules import Group, GroupChange
from controller.state.flow import Flow
from controller.state.flow_record import FLOW, record_of

_REBALANCE_AFTER_S = 0.1
"""After links have changed, the rates of flows that stay wait for those that have to move."""

_REBALANCE_TIMEOUT_S = 0.5
"""Time that a rebalance waits for moves that have begun."""

_REBALANCE_INTERVAL_S = 0.5
"""Flows that end within this time share one optimum, which takes most of a second for hundreds of flows."""


class Rates(Component):
    """Gives running flows their rates."""

    def __init__(
        self, shared: Context, optima: LiveOptima, interruptions: Interruptions, policing: Policing
    ) -> None:
        super().__init__(shared)
        self._optima = optima
        self._interruptions = interruptions
        self._policing = policing
        self._rebalanced = -math.inf
        self._latest = math.inf  # when it is done, whatever moves

    # When

    @property
    def is_settled(self) -> bool:
        """Whether running flows have their optimum."""
        return self._due is None

    def links_changed(self, now: float) -> None:
        """Record that links went or returned: what is lost is dealt with first."""
        self._plan_for(max(now + _REBALANCE_AFTER_S, self._rebalanced + _REBALANCE_INTERVAL_S))

    def wait(self, now: float) -> None:
        """Let the moves that are under way be done first, for a while."""
        if self._due is not None:
            self._due = max(self._due, min(now + _REBALANCE_AFTER_S, self._latest))

    def capacity_returned(self, now: float) -> None:
        """Record that there is more for flows than before."""
        self._plan_for(max(now, self._rebalanced + _REBALANCE_INTERVAL_S))

    def _plan_for(self, due: float) -> None:
        if self._due is None:
            self._latest = due + _REBALANCE_TIMEOUT_S
        self._due = due

    def capacity_changed(self, now: float) -> None:
        """Record that links have other rates or delays: rates follow at once."""
        self._due, self._rebalanced = None, now
        for objective in sorted({flow.objective for flow in self._state.flows if flow.objective}):
            self.apply(self.optimum(objective), now)

    def tick(self, now: float) -> None:
        """Let flows share what has become free, if that is due."""
        if self._due is not None and self._due <= now:
            self._due, self._rebalanced = None, now
            self._rebalance(now)

    # What

    def set(self, rates: Mapping[str, tuple[float, ...]]) -> list[Flow]:
        """Give flows their rates; returns those for which it makes a difference."""
        return set_rates(self._state, rates)

    def apply(self, rates: Mapping[str, tuple[float, ...]], now: float) -> None:
        """Give running flows new rates and tell their owners; a flow being installed hears by its answer."""
        for flow in self.set(rates):
            if flow.is_active:
                self.update_group(flow)
                self.save(flow)
                self._interruptions.settled(flow, now, has_moved=False)
                self._outbox.report("info", f"flow {flow.id} has new rates", **flow_fields(flow))
                self._outbox.put(Notify(flow.owner, AllocationChanged(self._state.view(flow, now))))

    def new_group(self, flow: Flow) -> Group | None:
        """Return the group with the weights of a split flow's rates if its ingress switch has other ones."""
        group = flow.group(self._state.live.ports)
        if flow.split is None or group is None or group == flow.split.group:
            return None
        flow.split.group = group
        return group if self._state.live.is_connected(flow.source.switch) else None

    def update_group(self, flow: Flow) -> None:
        """Give the group that splits a flow the weights of its rates, if it has others."""
        group = self.new_group(flow)
        if group is not None:
            self._transactions.send(
                flow.source.switch,
                (GroupChange(group),),
                lambda failure, _: self._weights_refused(flow.id, failure),
            )

    def _weights_refused(self, flow_id: str, failure: NotInstalled) -> None:
        """Record that a switch has not got new shares: the next change of rates sends them again."""
        flow = self._state.flows.get(flow_id)
        if flow is not None and flow.split is not None:
            flow.split.group = None
            text = f"flow {flow.id} has not got new shares: {failure.text}"
            self._outbox.report("error", text, flow=flow.id)

    def _rebalance(self, now: float) -> None:
        """Let the flows that are left share what has become free."""
        # Those over one path that have all they asked for cannot gain, nor do others by them.
        gaining = [
            flow for flow in self._state.flows if len(flow.streams) > 1 or flow.objective not in SEPARABLE
        ]
        for objective in sorted({f.objective for f in [*gaining, *self._state.flows.short()] if f.objective}):
            self.apply(self.optimum(objective), now)

    def optimum(self, objective: str) -> Mapping[str, tuple[float, ...]]:
        """Return the optimal rates of flows with an objective; if that fails, none and a line for the log."""
        try:
            return optimise(self._state, self._optima, objective).rates
        except FAILURES as error:
            self._outbox.report("error", f"the flows keep their rates: {error}", objective=objective)
            return {}

    def tell(self, flow: Flow, now: float) -> None:
        """Store a flow that has other paths or rates, and tell its owner."""
        self.update_group(flow)
        self.save(flow)
        self._interruptions.settled(flow, now, has_moved=True)
        self._outbox.put(Notify(flow.owner, AllocationChanged(self._state.view(flow, now))))

    def save(self, flow: Flow) -> None:
        """Store a flow as it is from now on."""
        flow.revision += 1
        self._outbox.store(FLOW, flow.id, record_of(flow))
        self._policing.follow(flow)
