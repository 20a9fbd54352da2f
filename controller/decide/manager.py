"""The life of flows: requested, installed, changed, renewed, released, ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from controller.decide.arrivals import Arrivals
from controller.decide.component import Component, Context
from controller.decide.host_streams import HostStreams
from controller.decide.interruptions import Interruptions
from controller.decide.leases import Leases
from controller.decide.live_optima import LiveOptima
from controller.decide.notifications import flow_fields, notify_refused, refuse
from controller.decide.planning import NEGLIGIBLE_SHARE, optimise
from controller.decide.policing import Policing
from controller.decide.rates import Rates
from controller.decide.recovery import Recovery
from controller.decide.state_copies import copy_state
from controller.errors import (
    FAILURES,
    Conflict,
    InfeasibleRequest,
    PreconditionFailed,
    RequestError,
    Unavailable,
    flow_of_another,
    unknown_flow,
)
from controller.install.transactions import NotInstalled, Transaction
from controller.model.callers import Caller
from controller.model.client_events import ClientEventKind
from controller.model.events import (
    FlowChanged,
    FlowReleased,
    FlowRequested,
    LeaseRenewed,
    StreamsReported,
)
from controller.model.faults import FaultKind
from controller.model.installed import Unsettled
from controller.model.journal import JournaledDict
from controller.model.messages import (
    AllocationChanged,
    FlowEnded,
    LeaseResult,
    Notify,
    RemoveGroup,
    RemoveRules,
)
from controller.model.rules import (
    GroupChange,
    Stages,
    by_switch,
    flow_number,
    split_group_number,
)
from controller.model.state_copy import StateCopy
from controller.state.flow import Flow, FlowState
from controller.state.flow_record import FLOW, FLOW_LEASE


@dataclass(eq=False)
class _Waiting:
    """A client that waits for rules of a flow; their owner.

    `before_bps` is None for a new flow; else its rates are being changed, and this is what it had asked for.
    """

    manager: FlowManager
    flow: Flow
    token: int
    before_bps: float | None
    transaction: Transaction | None = None

    def owns(self, cookie: int) -> bool:
        return flow_number(cookie) == self.flow.number

    def installed(self, now: float) -> None:
        self.manager.installed(self.flow.id, now)

    def failed(self, failure: NotInstalled, now: float) -> None:
        self.manager.failed(self.flow.id, self.token, failure.text, now)


class FlowManager(Component):
    """Handles what clients ask of flows, and what happens to flows."""

    def __init__(
        self,
        shared: Context,
        leases: Leases,
        policing: Policing,
        new_flow_id: Callable[[int], str],
        solved: Callable[[str, float], None],
    ) -> None:
        super().__init__(shared)
        self._optima = LiveOptima(self._state.live, self._state.settings.solve_limit_s, solved)
        self._leases = leases
        self._policing = policing
        self._waiting: JournaledDict[str, _Waiting] = JournaledDict()  # by flow
        self._by_token: JournaledDict[int, str] = JournaledDict()  # flows
        self.interruptions = Interruptions(shared)
        self.rates = Rates(shared, self._optima, self.interruptions, policing)
        self._recovery = Recovery(shared, self._optima, self.rates, self._lost)
        self._host_streams = HostStreams(shared, self._recovery, self.rates)
        self._arrivals = Arrivals(shared, self._optima, self.rates, self._install_new, new_flow_id)

    # What clients ask

    def request_all(self, requested: Sequence[FlowRequested], now: float) -> tuple[FlowRequested, ...]:
        """Route new flows in order; returns those that remain, so what is urgent waits for one solve."""
        first = [event for event in requested if not self._arrivals.is_repeated(event, now)]
        remaining = self._arrivals.request_all(first, now)
        self._recovery.rates_shared(now)
        return remaining

    def request(self, event: FlowRequested, now: float) -> None:
        """Route a new flow, take its rates in and begin to install its paths."""
        if not self._arrivals.is_repeated(event, now):
            self._arrivals.request(event, now)
            self._recovery.rates_shared(now)

    def abandon(self, token: int, now: float) -> None:
        """End a flow that is being installed for a client that no longer waits."""
        flow = self._state.flows.get(self._by_token.get(token, ""))
        if flow is not None and not flow.is_active:
            self._end(flow, "its client no longer waits", now)

    def change(self, event: FlowChanged, now: float) -> None:
        """Give a running flow another rate over the paths it has."""
        try:
            flow = self._changeable(event.flow_id, event.caller, event.if_revisions)
            if flow is None or not flow.is_active:
                raise unknown_flow(event.flow_id)
            if flow.id in self._waiting or self._recovery.is_moving(flow.id):
                raise Conflict("flow_id", f"{flow.id} is being changed already; ask again in a moment")
            before_bps = flow.requested_bps
            rates = self._plan_change(flow, event.rate_bps)
        except FAILURES as error:
            refuse(self._outbox, event.token, error)
            return
        self._leases.renew(flow, now)
        self.rates.set({flow.id: rates.pop(flow.id)})
        self.rates.apply(rates, now)
        self.rates.save(flow)
        self._recovery.rates_shared(now)
        text = f"the rate of flow {flow.id} was changed by {event.caller}"
        self._outbox.tell(ClientEventKind.FLOW_CHANGED, text, flow_fields(flow) | event.caller.facts())
        group = self.rates.new_group(flow)
        if group is None:
            self._outbox.answer(event.token, self._state.view(flow, now))
        else:
            stages: Stages = [{flow.source.switch: (GroupChange(group),)}]
            self._install(flow, event.token, stages, before_bps)

    def release(self, event: FlowReleased, now: float) -> None:
        """End a flow at its client's wish; a flow that has ended already is no error."""
        try:
            flow = self._changeable(event.flow_id, event.caller, event.if_revisions)
            if flow is None and not self._state.flows.has_ended(event.flow_id):
                raise unknown_flow(event.flow_id)
        except RequestError as error:
            self._outbox.answer(event.token, error)
            return
        if flow is not None:
            # Its own session knows; that of another client, or an administrator's victim, does not.
            tell_owner = event.caller.name != flow.belongs_to
            reason, kind = f"it was released by {event.caller}", ClientEventKind.FLOW_RELEASED
            self._end(flow, reason, now, kind, tell_owner, event.caller.facts())
        self._outbox.answer(event.token, None)

    def renew(self, event: LeaseRenewed, now: float) -> None:
        """Let flows live on for another lease."""
        renewed, unknown, forbidden = [], [], []
        for flow_id in event.flow_ids:
            flow = self._state.flows.get(flow_id)
            if flow is None:
                unknown.append(flow_id)
            elif not event.caller.may_change(flow.belongs_to):
                forbidden.append(flow_id)
            else:
                self._leases.renew(flow, now)
                if self._state.settings.replicated and flow.is_active:
                    self._outbox.store(FLOW_LEASE, flow.id, {})
                if flow.max_streams and flow.owner != event.owner and event.owner and flow.is_active:
                    # What it was told while nobody listened.
                    self._outbox.put(Notify(event.owner, AllocationChanged(self._state.view(flow, now))))
                flow.owner = event.owner or flow.owner
                renewed.append(flow_id)
        self._outbox.answer(event.token, LeaseResult(tuple(renewed), tuple(unknown), tuple(forbidden)))

    def streams_reported(self, event: StreamsReported, now: float) -> None:
        """Record what a host says of the streams of a flow."""
        self._host_streams.report(event, now)
        self._outbox.answer(event.token, None)

    def stop(self, now: float, reason: str = "the controller is stopping") -> None:
        """End what is not complete: the process, or the network as it is, is about to end."""
        for flow in [flow for flow in self._state.flows if not flow.is_active]:
            self._end(flow, reason, now)

    def hand_over(self, now: float) -> None:
        """End what is not complete, and keep clients waiting no more: the topology file was read again."""
        self.stop(now, "the topology file was read again; ask again")
        for flow in self._state.flows:
            waiting = self._stop_waiting(flow.id)
            if waiting is not None:  # its new rates are on the accounts
                self._outbox.answer(waiting.token, self._state.view(flow, now))

    # What happens to flows

    def is_unsettled(self, switch: str) -> bool:
        """Return whether rules of flows may be on their way to a switch."""
        through = self._state.flows.through(switch)
        return self._recovery.is_busy or any(not flow.is_active for flow in through)

    def unsettled(self) -> Unsettled:
        """Return the flows whose rules are being installed or moved."""
        flows = [
            flow for flow in self._state.flows if not flow.is_active or self._recovery.is_moving(flow.id)
        ]
        groups = [flow.split.group.number for flow in flows if flow.split and flow.split.group]
        return Unsettled(frozenset(flow.number for flow in flows), frozenset(groups))

    def copy(self) -> StateCopy:
        """Return a copy of all that routing depends on."""
        return copy_state(self._state, self._optima)

    def _install_new(self, flow: Flow, token: int) -> None:
        self._install(flow, token, [by_switch(flow.entries(self._state.live.ports))])

    def _install(self, flow: Flow, token: int, stages: Stages, before_bps: float | None = None) -> None:
        """Send rules of a flow for which a client waits; a flow has one such client at a time."""
        waiting = self._waiting[flow.id] = _Waiting(self, flow, token, before_bps)
        waiting.transaction = self._transactions.begin(waiting, stages)
        self._by_token[token] = flow.id

    def _stop_waiting(self, flow_id: str) -> _Waiting | None:
        waiting: _Waiting | None = self._waiting.pop(flow_id, None)
        if waiting is not None:
            self._transactions.cancel(waiting.transaction)
            self._by_token.pop(waiting.token, None)
        return waiting

    def installed(self, flow_id: str, now: float) -> None:
        """Record that all switches have confirmed the rules for which a client waits."""
        waiting, flow = self._stop_waiting(flow_id), self._state.flows.get(flow_id)
        if waiting is None or flow is None:
            return
        if waiting.before_bps is not None:
            self._outbox.answer(waiting.token, self._state.view(flow, now))
            return
        flow.state = FlowState.ACTIVE
        self._leases.renew(flow, now)
        self.rates.update_group(flow)
        self.rates.save(flow)
        lost = self._state.lost_links(flow)
        if lost:
            self._recovery.links_changed(lost, now)
        self._outbox.tell(ClientEventKind.FLOW_GRANTED, f"flow {flow.id} is installed", flow_fields(flow))
        self._outbox.answer(waiting.token, self._state.view(flow, now))

    def failed(self, flow_id: str, token: int | None, reason: str, now: float) -> None:
        """Take back what a switch did not take: a new flow, or a running one's new rate.

        A flow whose rules are refused after they were confirmed ends.
        """
        flow, waiting = self._state.flows.get(flow_id), self._waiting.get(flow_id)
        if flow is None:
            return
        if waiting is None or waiting.token != token:
            if flow.is_active:
                self._end(flow, f"{reason}, after it had confirmed them", now)
            return
        if waiting.before_bps is None:
            self._end(flow, reason, now)
            return
        self._stop_waiting(flow_id)
        self._outbox.answer(waiting.token, Unavailable("", f"the rate is as before: {reason}"))
        flow.requested_bps = waiting.before_bps
        if flow.split is not None:
            flow.split.group = None
        if flow.objective is not None:
            self.rates.apply(self.rates.optimum(flow.objective), now)

    def _lost(self, flow_id: str, failure: NotInstalled, now: float) -> None:
        """End a flow whose switch refuses the rules that it had before."""
        if failure.is_refusal:
            self.failed(flow_id, None, failure.text, now)

    def links_changed(self, lost: Collection[str], now: float) -> None:
        """Record that links went (those that are named) or returned: flows are planned again."""
        if not len(self._state.flows):
            return
        self.interruptions.links_lost(lost, now)
        self._recovery.links_changed(lost, now)
        self.rates.links_changed(now)

    def capacity_returned(self, now: float) -> None:
        """Record that links have more for flows than before: those that have too little get it soon."""
        self.rates.capacity_returned(now)
        self._recovery.capacity_returned(now)

    def capacity_changed(self, now: float) -> None:
        """Record that links have other rates or delays: rates follow at once, better paths soon."""
        self.rates.capacity_changed(now)
        self._recovery.capacity_returned(now)

    def switch_lost(self, switch: str, now: float) -> None:
        """Give up what needs a switch which has gone, though it has confirmed it: it may return without."""
        installing = [flow for flow in self._state.flows if not flow.is_active]
        for flow in installing:
            if switch in flow.switches():
                self._end(flow, f"the connection to {switch} ended", now)

    def tick(self, now: float) -> bool:
        """End what has run out of time, and plan what is due; returns whether flows are about to move."""
        if self._recovery.tick(now):
            return True
        for flow in self._leases.take_expired(now):
            self._end(flow, "its lease ran out", now, ClientEventKind.FLOW_EXPIRED)
        self._host_streams.tick(now)
        if self._recovery.is_busy:
            self.rates.wait(now)
        self.rates.tick(now)
        return False

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        parts = (self._recovery, self.rates, self._host_streams, self._leases)
        return min([due for part in parts if (due := part.next_deadline()) is not None], default=None)

    # Planning

    def _plan_change(self, flow: Flow, rate_bps: float) -> dict[str, tuple[float, ...]]:
        """Return the rates of all flows with the same objective after a change of one's demand."""
        if flow.objective is None:
            raise Conflict(
                "flow_id", f"the rates of {flow.id} were given by hand; release it and request another"
            )
        lost = self._state.lost_links(flow)
        if lost:
            raise InfeasibleRequest("flow_id", f"{flow.id} runs over link {lost[0]}, which is down")
        before_bps, flow.requested_bps = flow.requested_bps, rate_bps
        try:
            rates = dict(optimise(self._state, self._optima, flow.objective).rates)
            if sum(rates[flow.id]) <= NEGLIGIBLE_SHARE * rate_bps:
                raise InfeasibleRequest("rate_bps", f"no capacity is free on the paths of {flow.id}")
        except FAILURES:
            flow.requested_bps = before_bps
            raise
        return rates

    # Changing the state

    def _end(
        self,
        flow: Flow,
        reason: str,
        now: float,
        kind: ClientEventKind = ClientEventKind.FLOW_ENDED,
        tell_owner: bool = True,
        by: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Take a flow out: its rules, near end first, its rates, and the others' share of what it leaves."""
        waiting = self._stop_waiting(flow.id)
        if waiting is not None:
            text = f"the flow ended before it began: {reason}" if not flow.is_active else reason
            refusal = Unavailable("", text)
            self._outbox.answer(waiting.token, refusal)
            if not flow.is_active:
                notify_refused(
                    self._outbox, flow.source.name, flow.destination.name, refusal, flow.belongs_to
                )
        if flow.is_active and tell_owner:
            self._outbox.put(Notify(flow.owner, FlowEnded(flow.id, reason)))
        self._state.flows.remove(flow)
        self._state.flows.remember_ended(flow.id)
        if flow.is_active:
            self._outbox.store(FLOW, flow.id, None)
            if self._state.settings.replicated:
                self._outbox.store(FLOW_LEASE, flow.id, None)
        for each in (flow, self._recovery.flow_ended(flow)):
            self._remove_rules(each)
        for switch in flow.switches():
            self._state.faults.clear(switch, FaultKind.TABLE_FULL)  # there is room again
        ingress = flow.source.switch
        if flow.split is not None and flow.split.mode == "group" and self._state.live.is_connected(ingress):
            group = split_group_number(flow.split.tag)
            self._outbox.put(RemoveGroup(self._state.live.datapath_id(ingress), group))
        self.interruptions.ended(flow)
        self._policing.follow(flow)
        if flow.is_active:
            text = f"flow {flow.id} ended: {reason}"
            self._outbox.tell(kind, text, flow_fields(flow) | {"reason": reason} | dict(by))
        self.capacity_returned(now)

    def _remove_rules(self, flow: Flow | None) -> None:
        for switch in flow.rule_switches(self._state.live.ports) if flow is not None else ():
            if flow is not None and self._state.live.is_connected(switch):
                for cookie in flow.cookies:
                    self._outbox.put(RemoveRules(self._state.live.datapath_id(switch), cookie))

    # Answers

    def _changeable(self, flow_id: str, caller: Caller, if_revisions: frozenset[int] | None) -> Flow | None:
        """Return a flow that a client is about to change; None if there is no such flow.

        Raises:
            Forbidden: it is another client's.
            PreconditionFailed: it is not as it was when the client looked at it.
        """
        flow = self._state.flows.get(flow_id)
        if flow is None:
            return None
        if not caller.may_change(flow.belongs_to):
            raise flow_of_another(flow_id)
        if if_revisions is not None and flow.revision not in if_revisions:
            raise PreconditionFailed(
                "flow_id", f"{flow_id} has changed meanwhile (it has revision {flow.revision}); look again"
            )
        return flow
