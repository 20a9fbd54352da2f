"""The life of flows: requested, installed, changed, renewed, released, ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from controller.core.events import FlowChanged, FlowReleased, FlowRequested, LeaseRenewed, RulesRefused
from controller.core.journal import Journaled, JournaledDict
from controller.core.messages import (
    AllocationChanged,
    FlowEnded,
    LeaseResult,
    Notify,
    RemoveGroup,
    RemoveRules,
)
from controller.core.outbox import Outbox
from controller.core.requests import FlowRequest
from controller.core.state import State
from controller.errors import (
    Conflict,
    ControllerError,
    InfeasibleRequest,
    NotFound,
    RequestError,
    Unavailable,
)
from controller.flows.ack_paths import SHORTEST
from controller.flows.admission import Admission, admit, choose_source_ports, newcomer
from controller.flows.flow import Flow, Stream
from controller.flows.installation import Installation, Installations
from controller.flows.live_optima import LiveOptima
from controller.flows.manual_paths import check_paths
from controller.flows.planning import SEPARABLE, Optimum, PlannedPath, on_a_free_path, optimise
from controller.flows.record import FLOW, flow_of, record_of
from controller.flows.recovery import MOVE, Recovery
from controller.rules.model import Group, GroupChange, Rule, Stages, flow_number
from controller.rules.split import TAGS, Split

__all__ = ["FlowManager"]

_NEGLIGIBLE_SHARE = 1e-6
"""Less than this share of a flow's rate is the solver's rounding."""

_REBALANCE_AFTER_S = 0.1
"""After links have changed, the rates of flows that stay wait for those that have to move."""

_ENDED_REMEMBERED = 10_000
"""Flows whose ids are remembered after their end: to release them again is no error."""

_GROUP_OF = "group of "
"""Owner of a barrier that follows new shares: this and the flow's id."""

_REBALANCE_INTERVAL_S = 0.5
"""Flows that end within so long share one optimum: for hundreds of flows it takes a good part of a second."""


class FlowManager(Journaled):
    """Handles what clients ask of flows, and what happens to flows."""

    def __init__(self, state: State, outbox: Outbox, new_flow_id: Callable[[int], str]) -> None:
        self._new_flow_id = new_flow_id
        self._ended: JournaledDict[str, None] = (
            JournaledDict()
        )  # ids of flows that ended lately, oldest first
        self._state = state
        self._outbox = outbox
        self._optima = LiveOptima(state.live)
        self._installations = Installations(state, outbox)
        self._recovery = Recovery(state, outbox, self._optima, self._apply, self._tell)
        self._last_number = 0
        self._leases_due: float | None = None  # no lease runs out before
        self._rebalanced = -math.inf
        self._rebalance_due: float | None = None

    # What clients ask

    def request(self, event: FlowRequested, now: float) -> None:
        """Route a new flow, take its rates in and begin to install its paths."""
        try:
            flow, rates = self._plan(event, now)
        except ControllerError as error:
            self._refuse(event.token, error)
            return
        absent = [switch for switch in flow.switches() if not self._state.live.is_connected(switch)]
        if absent:
            self._outbox.answer(
                event.token,
                Unavailable("", f"the connection to {', '.join(absent)} ended a moment ago; ask again"),
            )
            return
        self._last_number = flow.number
        self._state.flows.add(flow)
        self._apply(rates, now)
        if flow.split is not None:
            flow.split.group = flow.group(self._state.live.ports)
        self._installations.begin(flow.id, event.token, flow.stages(self._state.live.ports))

    def abandon(self, token: int, now: float) -> None:
        """End a flow that is being installed for a client that no longer waits."""
        installation = self._installations.with_token(token)
        flow = None if installation is None else self._state.flows.get(installation.flow_id)
        if flow is not None and flow.state == "installing":
            self._end(flow, "its client no longer waits", now)

    def change(self, event: FlowChanged, now: float) -> None:
        """Give a running flow another rate over the paths it has."""
        flow = self._state.flows.get(event.flow_id)
        try:
            if flow is None or flow.state != "active":
                raise self._unknown(event.flow_id)
            if self._installations.of(flow.id) is not None or self._recovery.is_moving(flow.id):
                raise Conflict("flow_id", f"{flow.id} is being changed already; ask again in a moment")
            before_bps = flow.requested_bps
            rates = self._plan_change(flow, event.rate_bps)
        except ControllerError as error:
            self._refuse(event.token, error)
            return
        self._renew(flow, now)
        self._set_rates({flow.id: rates.pop(flow.id)})
        self._apply(rates, now)
        self._save(flow)
        self._outbox.report("info", f"flow {flow.id} changed its rate", **_facts(flow))
        group = self._new_group(flow)
        if group is None:
            self._outbox.answer(event.token, self._state.view(flow, now))
        else:
            stages: Stages = [{flow.source.switch: (GroupChange(group),)}]
            self._installations.begin(flow.id, event.token, stages, before_bps)

    def release(self, event: FlowReleased, now: float) -> None:
        """End a flow at its client's wish; a flow that has ended already is no error."""
        flow = self._state.flows.get(event.flow_id)
        if flow is None:
            ended = event.flow_id in self._ended
            self._outbox.answer(event.token, None if ended else self._unknown(event.flow_id))
            return
        self._end(flow, "it was released", now, tell_owner=False)
        self._outbox.answer(event.token, None)

    def renew(self, event: LeaseRenewed, now: float) -> None:
        """Let flows live on for another lease."""
        renewed, unknown = [], []
        for flow_id in event.flow_ids:
            flow = self._state.flows.get(flow_id)
            if flow is None:
                unknown.append(flow_id)
                continue
            self._renew(flow, now)
            flow.owner = event.owner or flow.owner
            renewed.append(flow_id)
        self._outbox.answer(event.token, LeaseResult(tuple(renewed), tuple(unknown)))

    def stop(self, now: float) -> None:
        """End what is not complete, as the process is about to end."""
        for flow in [flow for flow in self._state.flows if flow.state == "installing"]:
            self._end(flow, "the controller is stopping", now)

    # What happens to flows

    def pinned_rules(self, switch: str) -> tuple[Rule | Group, ...]:
        """Return the rules and groups that a switch should have of the flows that are complete."""
        entries: list[Rule | Group] = []
        for flow in self._state.flows.through(switch):
            if flow.state == "active":
                for stage in flow.stages(self._state.live.ports):
                    entries.extend(
                        entry for entry in stage.get(switch, ()) if not isinstance(entry, GroupChange)
                    )
        return tuple(entries)

    def restore(self, records: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """Take up the flows of the controller's last run, each with a whole lease for its owner to renew."""
        for flow_id, record in sorted(records.items(), key=lambda item: item[1]["number"]):
            flow = flow_of(flow_id, record, self._state, now)
            self._last_number = max(self._last_number, record["number"])
            if flow is None:
                self._outbox.report(
                    "warning", f"flow {flow_id} is given up: the topology has its path no more", flow=flow_id
                )
                self._outbox.store(FLOW, flow_id, None)
            else:
                self._state.flows.add(flow)
                self._renew(flow, now)

    def flush(self) -> None:
        """Send what the event has let begin or go on."""
        self._installations.flush()

    def confirm(self, barrier: int, switch: str, now: float) -> None:
        """Take a switch's barrier in; the flows that are complete with it are answered."""
        self._recovery.confirm(barrier, switch, now)
        for installation in self._installations.confirm(barrier, switch):
            flow = self._state.flows.get(installation.flow_id)
            if flow is not None:
                self._complete(installation, flow, now)

    def _complete(self, installation: Installation, flow: Flow, now: float) -> None:
        if installation.requested_before_bps is not None:
            self._outbox.answer(installation.token, self._state.view(flow, now))
            return
        flow.state = "active"
        self._renew(flow, now)
        self._update_group(flow)
        self._save(flow)
        lost = self._state.lost_links(flow)
        if lost:
            self._recovery.links_changed(lost, now)
        self._outbox.report("info", f"flow {flow.id} is installed", **_facts(flow))
        self._outbox.answer(installation.token, self._state.view(flow, now))

    def refuse(self, owners: Sequence[str], switch: str, event: RulesRefused, now: float) -> None:
        """Take in that a switch did not accept rules that were sent for flows: whose, its cookie says."""
        if len(owners) > 1 and event.cookie is not None:
            number = flow_number(event.cookie)
            flows = (self._state.flows.get(owner) for owner in owners)
            owners = [flow.id for flow in flows if flow is not None and flow.number == number]
        for owner in owners:
            self._refuse_rules(owner, switch, event.barrier, event.reason, now)

    def _refuse_rules(self, owner: str, switch: str, barrier: int, reason: str, now: float) -> None:
        if owner.startswith(MOVE):
            self._recovery.refuse(owner, switch, reason, now)
            return
        flow = self._state.flows.get(owner.removeprefix(_GROUP_OF))
        if flow is None:
            return
        installation = self._installations.of(flow.id)
        if installation is not None and flow.state == "active" and barrier not in installation.awaited:
            installation = None  # of other rules than those that are on their way
        if installation is not None:
            self._give_up(installation, f"{switch} refused the rules: {reason}", now)
            return
        if owner.startswith(_GROUP_OF) and flow.split is not None:
            flow.split.group = None  # so the next change of rates sends it again
            self._outbox.report(
                "error", f"{switch} refused new shares of flow {flow.id}: {reason}", flow=flow.id
            )
        elif flow.state == "active":
            self._end(flow, f"{switch} refused its rules after it had confirmed them: {reason}", now)

    def sent(self, now: float) -> None:
        """Take in that all messages have been sent."""
        self._installations.sent(now)
        self._recovery.sent(now)

    def links_changed(self, lost: Collection[str], now: float) -> None:
        """Take in that links went (those that are named) or returned: flows are planned again."""
        if not len(self._state.flows):
            return
        self._recovery.links_changed(lost, now)
        # What is lost is dealt with first.
        self._rebalance_due = max(now + _REBALANCE_AFTER_S, self._rebalanced + _REBALANCE_INTERVAL_S)

    def switch_lost(self, switch: str, now: float) -> None:
        """Fail the installations that need a switch which has gone."""
        self._recovery.switch_lost(switch, now)
        # Those that it has confirmed already too: what it had is gone when it returns.
        installing = [flow for flow in self._state.flows if flow.state == "installing"]
        for flow in installing:
            if switch in flow.switches():
                self._end(flow, f"the connection to {switch} ended", now)

    def tick(self, now: float) -> None:
        """End what has run out of time, and plan what is due."""
        self._recovery.tick(now)
        for installation in self._installations.overdue(now):
            silent = ", ".join(sorted(set(installation.awaited.values())))
            limit_s = self._state.settings.confirm_timeout_s
            self._give_up(installation, f"{silent} did not confirm the rules within {limit_s:g} s", now)
        if self._leases_due is not None and self._leases_due <= now:
            active = [flow for flow in self._state.flows if flow.state == "active"]
            for flow in active:
                if flow.expires_at <= now:
                    self._end(flow, "its lease ran out", now)
            left = (flow.expires_at for flow in active if flow.expires_at > now)
            self._leases_due = min(left, default=None)
        if self._rebalance_due is not None and self._rebalance_due <= now:
            self._rebalance_due, self._rebalanced = None, now
            self._rebalance(now)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        times = (
            self._installations.next_deadline(),
            self._recovery.next_deadline(),
            self._rebalance_due,
            self._leases_due,
        )
        return min((time for time in times if time is not None), default=None)

    # Planning

    def _plan(self, event: FlowRequested, now: float) -> tuple[Flow, Mapping[str, tuple[float, ...]]]:
        """Return the new flow and the rates that running flows get beside it."""
        request, state = event.request, self._state
        admission = admit(state, request)
        number = self._last_number + 1
        flow_id = self._new_flow_id(number)
        if admission.objective is None:
            optimum = check_paths(state, request, admission)
            requested_bps = sum(path.rate_bps for path in optimum.paths)
        else:
            requested_bps = request.rate_bps or 0.0
            wanted = newcomer(flow_id, request, admission, requested_bps)
            settled = self._rebalance_due is None
            optimum = (on_a_free_path(state, admission.objective, wanted) if settled else None) or optimise(
                state, self._optima, admission.objective, wanted
            )
            _check_granted(optimum.paths, requested_bps, admission)
        split = self._split(request, optimum, number)
        connections = 1 if split is not None else len(optimum.paths)
        ports = choose_source_ports(state, request, admission.source, connections)
        if split is not None:
            ports *= len(optimum.paths)
        lease_s = request.lease_s or state.settings.lease_s
        flow = Flow(
            number=number,
            id=flow_id,
            source=admission.source,
            destination=admission.destination,
            destination_port=request.destination_port,
            requested_bps=requested_bps,
            framing=admission.framing,
            objective=admission.objective,
            streams=[
                Stream(port, path.nodes, path.rate_bps, path.delay_s)
                for port, path in zip(ports, optimum.paths, strict=True)
            ],
            lease_s=lease_s,
            expires_at=now + lease_s,
            owner=event.owner,
            split=split,
            given_bps=tuple(p.rate_bps for p in optimum.paths) if admission.objective is None else None,
        )
        return flow, optimum.rates

    def _split(self, request: FlowRequest, optimum: Optimum, number: int) -> Split | None:
        if request.splitting == "streams" or optimum.ack_path is None:
            return None
        tag = self._state.flows.free_tag(number)
        if tag is None:
            raise InfeasibleRequest(
                "splitting", f"{TAGS} split flows run already and stamps have no room for more; release one"
            )
        return Split(request.splitting, tag, request.ack_path or SHORTEST, optimum.ack_path)

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
            if sum(rates[flow.id]) <= _NEGLIGIBLE_SHARE * rate_bps:
                raise InfeasibleRequest("rate_bps", f"no capacity is free on the paths of {flow.id}")
        except ControllerError:
            flow.requested_bps = before_bps
            raise
        return rates

    # Changing the state

    def _renew(self, flow: Flow, now: float) -> None:
        flow.expires_at = now + flow.lease_s
        if self._leases_due is None or flow.expires_at < self._leases_due:
            self._leases_due = flow.expires_at

    def _set_rates(self, rates: Mapping[str, tuple[float, ...]]) -> list[Flow]:
        """Give flows their rates; returns those for which it makes a difference."""
        changed = []
        for flow_id, values in rates.items():
            flow = self._state.flows.get(flow_id)
            if flow is None:
                continue
            least_bps = _NEGLIGIBLE_SHARE * flow.requested_bps
            if any(
                abs(s.rate_bps - value) > least_bps for s, value in zip(flow.streams, values, strict=True)
            ):
                changed.append(flow)
                for stream, value in zip(flow.streams, values, strict=True):
                    stream.rate_bps = value
                self._state.flows.account(flow)
        return changed

    def _apply(self, rates: Mapping[str, tuple[float, ...]], now: float) -> None:
        """Give running flows new rates and tell their owners; a flow being installed hears by its answer."""
        for flow in self._set_rates(rates):
            if flow.state == "active":
                self._update_group(flow)
                self._save(flow)
                self._outbox.report("info", f"flow {flow.id} has new rates", **_facts(flow))
                self._outbox.put(Notify(flow.owner, AllocationChanged(self._state.view(flow, now))))

    def _new_group(self, flow: Flow) -> Group | None:
        """Return the group with the weights of a split flow's rates if its ingress switch has other ones."""
        group = flow.group(self._state.live.ports)
        if flow.split is None or group is None or group == flow.split.group:
            return None
        flow.split.group = group
        return group if self._state.live.is_connected(flow.source.switch) else None

    def _update_group(self, flow: Flow) -> None:
        """Give the group that splits a flow the weights of its rates, if it has others."""
        group = self._new_group(flow)
        if group is not None:
            datapath_id = self._state.live.datapath_id(flow.source.switch)
            self._outbox.install(datapath_id, (GroupChange(group),), _GROUP_OF + flow.id)

    def _end(self, flow: Flow, reason: str, now: float, tell_owner: bool = True) -> None:
        """Take a flow out: its rules, near end first, its rates, and the others' share of what it leaves."""
        installation = self._installations.cancel(flow.id)
        if installation is not None:
            text = f"the flow ended before it began: {reason}" if flow.state == "installing" else reason
            self._outbox.answer(installation.token, Unavailable("", text))
        if flow.state == "active" and tell_owner:
            self._outbox.put(Notify(flow.owner, FlowEnded(flow.id, reason)))
        self._state.flows.remove(flow)
        self._ended[flow.id] = None
        if len(self._ended) > _ENDED_REMEMBERED:
            del self._ended[next(iter(self._ended))]
        if flow.state == "active":
            self._outbox.store(FLOW, flow.id, None)
        for each in (flow, self._recovery.flow_ended(flow)):
            self._remove_rules(each)
        ingress = flow.source.switch
        if flow.split is not None and flow.split.group is not None and self._state.live.is_connected(ingress):
            group = flow.split.group.number
            self._outbox.put(RemoveGroup(self._state.live.datapath_id(ingress), group))
        self._outbox.report("info", f"flow {flow.id} ended: {reason}", flow=flow.id)
        self._rebalance_due = max(now, self._rebalanced + _REBALANCE_INTERVAL_S)
        self._recovery.capacity_returned(now)

    def _remove_rules(self, flow: Flow | None) -> None:
        for switch in flow.switches() if flow is not None else ():
            if flow is not None and self._state.live.is_connected(switch):
                for cookie in flow.cookies:
                    self._outbox.put(RemoveRules(self._state.live.datapath_id(switch), cookie))

    def _give_up(self, installation: Installation, reason: str, now: float) -> None:
        """Take back what a switch did not take: a new flow, or a running one's new rate."""
        flow = self._state.flows.get(installation.flow_id)
        if flow is None:
            return
        if installation.requested_before_bps is None:
            self._end(flow, reason, now)
            return
        self._installations.cancel(flow.id)
        self._outbox.answer(installation.token, Unavailable("", f"the rate is as before: {reason}"))
        flow.requested_bps = installation.requested_before_bps
        if flow.split is not None:
            flow.split.group = None
        if flow.objective is not None:
            self._apply(self._optimum_or_nothing(flow.objective), now)

    def _rebalance(self, now: float) -> None:
        """Let the flows that are left share what has become free."""
        # Those over one path that have all they asked for cannot gain, nor do others by them.
        gaining = [
            flow for flow in self._state.flows if len(flow.streams) > 1 or flow.objective not in SEPARABLE
        ]
        for objective in sorted({f.objective for f in [*gaining, *self._state.flows.short()] if f.objective}):
            self._apply(self._optimum_or_nothing(objective), now)

    def _optimum_or_nothing(self, objective: str) -> Mapping[str, tuple[float, ...]]:
        try:
            return optimise(self._state, self._optima, objective).rates
        except ControllerError as error:
            self._outbox.report("error", f"the flows keep their rates: {error}", objective=objective)
            return {}

    def _tell(self, flow: Flow, now: float) -> None:
        """Store a flow that has other paths or rates, and tell its owner."""
        self._update_group(flow)
        self._save(flow)
        self._outbox.put(Notify(flow.owner, AllocationChanged(self._state.view(flow, now))))

    def _save(self, flow: Flow) -> None:
        self._outbox.store(FLOW, flow.id, record_of(flow))

    # Answers

    def _refuse(self, token: int, error: ControllerError) -> None:
        if not isinstance(error, RequestError):
            self._outbox.report("error", f"a request failed: {error}")
            error = Unavailable("", f"the routes could not be computed: {error}")
        self._outbox.answer(token, error)

    def _unknown(self, flow_id: str) -> NotFound:
        return NotFound("flow_id", f"there is no flow {flow_id!r}; it may have ended with its lease")


def _check_granted(paths: tuple[PlannedPath, ...], requested_bps: float, admission: Admission) -> None:
    if sum(path.rate_bps for path in paths) <= _NEGLIGIBLE_SHARE * requested_bps:
        raise InfeasibleRequest(
            "rate_bps",
            f"no capacity is free from {admission.source.name} to {admission.destination.name}; "
            "release a flow first (see GET /v1/links)",
        )


def _facts(flow: Flow) -> dict[str, object]:
    return {
        "flow": flow.id,
        "source": flow.source.name,
        "destination": flow.destination.name,
        "requested_bps": flow.requested_bps,
        "rate_bps": flow.rate_bps,
        "paths": [list(stream.path) for stream in flow.streams],
        "rates_bps": [stream.rate_bps for stream in flow.streams],
    }
