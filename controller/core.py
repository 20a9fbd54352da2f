"""The core: events and the time go in, messages come out. It does no I/O and imports no framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from controller.decide.component import Context
from controller.decide.default_routes import DefaultRoutes
from controller.decide.dhcp_relay import DhcpRelay
from controller.decide.leases import Leases
from controller.decide.link_changes import LINK, LinkChanges, name_of
from controller.decide.link_watch import LinkWatch
from controller.decide.load_measurement import LoadMeasurement
from controller.decide.manager import FlowManager
from controller.decide.neighbours import Neighbours
from controller.decide.notifications import notify_topology_changed
from controller.decide.policing import Policing
from controller.decide.protection import Protection
from controller.decide.queries import Queries
from controller.decide.rule_audit import RuleAudit
from controller.decide.rule_counters import RuleCounters
from controller.decide.state_copies import flow_records
from controller.decide.switch_faults import SwitchFaults
from controller.decide.switch_rules import SwitchRules
from controller.decide.takeover import Takeover
from controller.errors import RequestError
from controller.install.outbox import Outbox
from controller.install.transactions import Transactions
from controller.model import dhcp, events, host_frames
from controller.model.callers import CONFIGURATION, Caller
from controller.model.client_events import ClientEventKind
from controller.model.journal import Journal, Journaled, JournaledDict, JournaledSet
from controller.model.messages import Acknowledge, IntroduceSwitch, Message, Postpone
from controller.model.records import RecordChange, Records, changes_of
from controller.model.requests import LinkChange, ViewName
from controller.model.rules import Group, Meter, Rule
from controller.model.settings import Settings
from controller.state.flow_record import FLOW, FLOW_LEASE
from controller.state.hosts import LEARNED_HOST
from controller.state.state import State
from topologies.model import Network

_RUN = "run"
"""Kind of the record that the controller has had switches: they may have rules and traffic."""

_MAX_METERED = 1024
"""Ports of a switch whose packets to the controller its meters limit, at most."""


class Core(Journaled):
    """Decides everything. Call it from one thread, with times that never go back.

    `new_flow_id` makes the id of a flow from its number: ids that nobody can guess keep others from releasing
    or renewing it. `solved` is called after each solve with the objective and the seconds that it took.
    """

    def __init__(
        self,
        network: Network,
        settings: Settings,
        new_flow_id: Callable[[int], str] | None = None,
        solved: Callable[[str, float], None] = lambda *_: None,
    ) -> None:
        self._new_flow_id = new_flow_id or (lambda number: f"{settings.boot_id}-{number}")
        self._solved = solved
        self._outbox = Outbox()
        self._has_run: JournaledSet[str] = JournaledSet()  # whether the store says so already
        self._now = 0.0  # of the event in hand
        self._handlers = self._event_handlers()
        self._assemble(State(network, settings))

    def _assemble(self, state: State) -> None:
        """Make all parts, for a network of which nothing is known yet."""
        self._state = state
        self._transactions = Transactions(state, self._outbox)
        shared = Context(state, self._outbox, self._transactions)
        self._rules = SwitchRules(
            shared,
            self._beside_fixed,
            self._count_beside_fixed,
            lambda switch, now: self._audit.refused(switch, now),
        )
        self._default_routes = DefaultRoutes(shared, self._rules)
        self._dhcp_relay = DhcpRelay(shared)
        self._neighbours = Neighbours(shared, self._default_routes, self._rules)
        self._protection = Protection(shared)
        leases = Leases(shared)
        self._policing = Policing(shared, self._rules)
        self._flows = FlowManager(shared, leases, self._policing, self._new_flow_id, self._solved)
        self._takeover = Takeover(shared, leases, self._flows.capacity_changed)
        self._audit = RuleAudit(shared, self._rules, self._flows)
        self._measuring = LoadMeasurement(shared, self._flows.capacity_returned, self._audit.counters_asked)
        self._links = LinkWatch(shared)
        self._switch_faults = SwitchFaults(shared)
        self._gone_at: JournaledDict[int, float] = JournaledDict()  # when a switch that is away is given up
        self._link_changes = LinkChanges(shared, self._flows)
        self._queries = Queries(shared, self._rules, self._flows)
        self._rule_counters = RuleCounters(shared, self._queries.rules)
        self._timed = (
            self._transactions,
            self._flows,
            self._default_routes,
            self._links,
            state.hosts,
            self._neighbours,
            self._protection,
            self._measuring,
            self._rule_counters,
            self._audit,
        )

    def _event_handlers(self) -> dict[type, Callable[[Any], None]]:
        return {
            events.SwitchConnected: self._switch_connected,
            events.SwitchDisconnected: self._switch_disconnected,
            events.SwitchHeld: lambda event: self._switch_faults.held(event),
            events.InstalledRead: self._installed_read,
            events.MessagesRefused: lambda event: self._switch_faults.messages_refused(event, self._now),
            events.PortCameUp: self._port_came_up,
            events.PortWentDown: self._port_went_down,
            events.LinkDiscovered: self._link_discovered,
            events.PacketArrived: self._packet_arrived,
            events.RuleExpired: lambda event: self._default_routes.expired(event.datapath_id, event.ip),
            events.BarrierReceived: self._barrier_received,
            events.RulesRefused: self._rules_refused,
            events.CountersRead: self._counters_read,
            events.CountersRefused: lambda event: self._measuring.refused(event),
            events.FlowRequested: lambda event: self._flows.request(event, self._now),
            events.RequestAbandoned: lambda event: self._flows.abandon(event.token, self._now),
            events.FlowChanged: lambda event: self._flows.change(event, self._now),
            events.FlowReleased: lambda event: self._flows.release(event, self._now),
            events.LeaseRenewed: lambda event: self._flows.renew(event, self._now),
            events.StreamsReported: lambda event: self._flows.streams_reported(event, self._now),
            events.LinkChanged: self._link_changed,
            events.ConfigurationChanged: self._configuration_changed,
            events.ConfigurationRefused: self._configuration_refused,
            events.ViewRequested: self._view_requested,
            events.FlowsRequested: lambda event: self._outbox.answer(
                event.token, self._queries.page(event.query, self._now)
            ),
            events.CopyRequested: lambda event: self._outbox.answer(event.token, self._flows.copy()),
            events.ControllerStopping: self._controller_stopping,
            events.Together: self._together,
            events.TimePassed: self._time_passed,
        }

    def _take_up(self, network: Network) -> None:
        """Go on with a network whose file says something else than it did, as after a restart.

        All that is there counts as away until it is announced again with what it has: rules that are right
        stay, and flows whose paths are gone are planned again.
        """
        former = self._state
        self._flows.hand_over(self._now)
        flows, links = flow_records(former), self._link_changes.records()
        owners = {flow.id: flow.owner for flow in former.flows}
        self._rule_counters.stop()
        ids, former_ids = (
            {each.datapath_id(switch): switch for switch in each.switches}
            for each in (network, former.live.network)
        )
        for datapath_id in former_ids.keys() - ids.keys():
            if former.live.is_connected_id(datapath_id):
                self._rules.wipe(former_ids[datapath_id])
        notify_topology_changed(self._outbox, former.live.network, network)
        self._assemble(State(network, former.settings))
        self._state.succeed(former, self._now)
        self._link_changes.restore(links)
        for datapath_id, switch in ids.items():
            if self._state.live.is_away(switch):
                self._gone_at[datapath_id] = self._now + former.settings.switch_grace_s
        self._protection.find_all()
        self._takeover.restore(flows, self._now, owners)
        self._flows.links_changed(self._state.live.links_down(), self._now)
        for datapath_id in sorted(ids | former_ids):
            self._outbox.put(IntroduceSwitch(datapath_id))

    def restore(self, records: Records, now: float) -> list[Message]:
        """Take up what the last run has left in the store; call it before any event."""
        if records:
            self._assume_all()
        self.follow(changes_of(records), now)
        return self.lead(now)

    def follow(self, changes: Sequence[RecordChange], now: float) -> None:
        """Know what another replica has written to the store, in order; nothing is done about it."""
        followers: dict[str, Callable[[str, Mapping[str, Any] | None], None]] = {
            LINK: lambda link, record: self._link_changes.restore({link: record or {}}),
            LEARNED_HOST: lambda ip, record: self._state.hosts.follow(ip, record, now),
            FLOW: lambda flow_id, record: self._takeover.follow(flow_id, record, now),
            FLOW_LEASE: lambda flow_id, _: self._takeover.follow_lease(flow_id, now),
            _RUN: lambda *_: self._assume_all(),
        }
        with Journal():
            for change in changes:
                if change.kind in followers:
                    followers[change.kind](change.key, change.value)

    def _assume_all(self) -> None:
        if _RUN not in self._has_run:
            self._has_run.add(_RUN)
            self._state.live.assume_all()

    def lead(self, now: float) -> list[Message]:
        """Decide from now on; until then this has followed what others have written.

        The network is assumed to be as the file has it until its switches have had the time to connect, so
        that nothing that works is taken away.
        """
        self._now = now
        if _RUN in self._has_run:
            for switch in self._state.live.network.switches:
                datapath_id = self._state.live.datapath_id(switch)
                self._gone_at[datapath_id] = now + self._state.settings.switch_grace_s
            self._protection.find_all()
            self._takeover.lead(now)
        return self._outbox.take()

    def handle(self, event: events.Event, now: float) -> list[Message]:
        """Take an event in and return what is to be done about it, in order.

        An event is applied whole or not at all: where this raises, the state is as before, and no message of
        the event is left.
        """
        self._now = now
        try:
            with Journal():
                self._on(event)
                self._transactions.flush()
        except BaseException:
            self._outbox.take()
            raise
        return self._outbox.take()

    def sent(self, now: float) -> None:
        """Record that the messages of the last event have been sent: now begins the time to confirm them."""
        self._transactions.sent(now)
        self._protection.sent(now)

    def next_deadline(self) -> float | None:
        """Return the time at which a `TimePassed` is due, after all that has happened by then."""
        parts = (*self._timed, self._state.faults)
        deadlines = [due for part in parts if (due := part.next_deadline()) is not None]
        return min((*deadlines, *self._gone_at.values()), default=None)

    def _on(self, event: events.Event) -> None:
        handler = self._handlers.get(type(event))
        if handler is None:
            raise TypeError(f"{event!r} is not an event of the controller")
        handler(event)

    def _switch_connected(self, event: events.SwitchConnected) -> None:
        self._outbox.put(Acknowledge(event.datapath_id, event.announcement))
        live = self._state.live
        switch = live.switch_name(event.datapath_id)
        if switch is not None and live.is_connected(switch):
            self._leave(event.datapath_id, switch)
        for fault in live.name_ports(event.datapath_id, dict(event.port_names)):
            self._outbox.report("warning", fault, switch=switch)
        self._state.hosts.follow_ports()
        if not live.connect(event.datapath_id, event.live_ports) or switch is None:
            self._outbox.report("warning", live.faults()[0], datapath_id=event.datapath_id)
            return
        self._gone_at.pop(event.datapath_id, None)
        if _RUN not in self._has_run:
            self._has_run.add(_RUN)
            self._outbox.store(_RUN, "switches", {})
        self._links.switch_joined(event.datapath_id, event.live_ports, self._now)
        ports = sorted(event.live_ports)
        facts = {"switch": switch, "ports": ports}
        self._outbox.tell(ClientEventKind.SWITCH_UP, f"{switch} is connected", facts)
        self._state.metered_ports.pop(switch, None)
        if event.installed is not None and event.installed.meters is not None:
            edges = (port for port in ports if live.is_edge_port(event.datapath_id, port))
            self._state.metered_ports[switch] = tuple(islice(edges, _MAX_METERED))
        self._default_routes.connect(switch, event.installed)
        self._policing.connect(switch)
        self._rules.connect(switch, event.installed)
        self._measuring.switch_joined(event.datapath_id, self._now)
        self._links_may_have_changed()

    def _beside_fixed(self, switch: str) -> tuple[Rule | Group | Meter, ...]:
        """Return what a switch should have beside its fixed rules, groups first."""
        return (
            *self._protection.groups(switch),
            *self._default_routes.sent_to(switch),
            *self._protection.rules(switch),
            *self._state.pinned_rules(switch),
            *self._policing.sent_to(switch),
        )

    def _count_beside_fixed(self, switch: str) -> int:
        relayed = len(self._protection.rules(switch))
        policing = sum(isinstance(entry, Rule) for entry in self._policing.sent_to(switch))
        routed = self._default_routes.count(switch)
        return relayed + routed + policing + self._state.pinned_rule_count(switch)

    def _switch_disconnected(self, event: events.SwitchDisconnected) -> None:
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is None:
            self._state.live.leave(event.datapath_id)
            return
        text = f"the connection to {switch} ended"
        self._outbox.tell(ClientEventKind.SWITCH_DOWN, text, {"switch": switch}, "warning")
        self._leave(event.datapath_id, switch)

    def _installed_read(self, event: events.InstalledRead) -> None:
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is not None and self._state.live.is_connected(switch):
            self._audit.read(switch, event.installed, self._now)
            self._rule_counters.take(event.datapath_id, event.installed.counts, self._now)

    def _leave(self, datapath_id: int, switch: str) -> None:
        """Record that a switch's connection ended: it is assumed to forward as before, for a while."""
        self._state.live.leave(datapath_id)
        self._gone_at[datapath_id] = self._now + self._state.settings.switch_grace_s
        self._links.switch_left(datapath_id)
        self._default_routes.disconnect(switch)
        self._rules.disconnect(switch)
        self._policing.disconnect(switch)
        self._transactions.switch_lost(switch, self._now)
        self._flows.switch_lost(switch, self._now)
        self._measuring.switch_left(datapath_id, self._now)
        self._rule_counters.switch_left(datapath_id)
        self._audit.switch_left(switch)
        self._switch_faults.switch_left(switch)

    def _give_up_switches(self) -> None:
        """Take switches that did not come back in time for gone, with all their links."""
        for datapath_id in [each for each, time in self._gone_at.items() if time <= self._now]:
            del self._gone_at[datapath_id]
            name = self._state.live.switch_name(datapath_id)
            text = f"{name} did not come back: its links count as down"
            self._outbox.tell(ClientEventKind.SWITCH_LOST, text, {"switch": name}, "warning")
            self._state.live.disconnect(datapath_id)
            self._links_may_have_changed()

    def _port_came_up(self, event: events.PortCameUp) -> None:
        self._links.port_came_up(event)
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is not None and self._state.live.port_is_live(event.datapath_id, event.port):
            self._neighbours.port_came_up(switch, event.port, self._now)
        self._links_may_have_changed()

    def _port_went_down(self, event: events.PortWentDown) -> None:
        self._links.port_went_down(event)
        self._links_may_have_changed()

    def _link_discovered(self, event: events.LinkDiscovered) -> None:
        if self._links.discovered(event, self._now):
            self._links_may_have_changed()

    def _links_may_have_changed(self) -> None:
        for switch in self._state.live.take_rebound():
            self._rules.update(switch)
            self._default_routes.refresh_soon(self._now, everything=True)
        changed, down = self._links.take_changed(self._now)
        if changed:
            self._default_routes.refresh_soon(self._now)
            self._flows.links_changed(down, self._now)
            self._protection.links_changed(changed, self._now)

    def _packet_arrived(self, event: events.PacketArrived) -> None:
        """Answer who asks for a host, pass DHCP on, or give an IP packet a route; others are none of ours."""
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is None or not self._state.live.is_edge_port(event.datapath_id, event.port):
            return
        request = dhcp.parse(event.frame) if self._state.live.network.dhcp_servers else None
        message = host_frames.parse_neighbour(event.frame)
        destination = host_frames.destination_of(event.frame)
        if message is not None:
            self._neighbours.arrived(switch, event.port, message, event.frame, self._now)
        elif request is not None:
            self._dhcp_relay.arrived(switch, event.port, request, event.frame, self._now)
        elif destination is not None:
            self._default_routes.arrived(switch, event.port, destination, event.frame, self._now)

    def _barrier_received(self, event: events.BarrierReceived) -> None:
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is not None:
            self._transactions.confirm(event.barrier, switch, self._now)

    def _together(self, event: events.Together) -> None:
        requested = [each for each in event.events if isinstance(each, events.FlowRequested)]
        for each in event.events if not requested else ():
            self._on(each)
        left = self._flows.request_all(requested, self._now)
        if left:
            self._outbox.put(Postpone(left))

    def _rules_refused(self, event: events.RulesRefused) -> None:
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is None or not self._transactions.refused(
            event.barrier, event.cookie, switch, event.reason, self._now
        ):
            return  # a second error for the same rules, or of rules that were sent long ago
        if event.is_full:
            self._switch_faults.full(switch, self._now)

    def _counters_read(self, event: events.CountersRead) -> None:
        self._measuring.take(event, self._now)
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is not None and self._state.live.is_connected(switch):
            self._audit.counted(switch, event.rules, self._now)

    def _link_changed(self, event: events.LinkChanged) -> None:
        try:
            name = self._link_changes.check(event.link, event.if_revisions)
        except RequestError as error:
            self._outbox.answer(event.token, error)
            return
        self._change_links({name: event.change}, event.caller)
        self._outbox.answer(event.token, self._state.link(name))

    def _change_links(self, changes: Mapping[str, LinkChange], caller: Caller = CONFIGURATION) -> None:
        self._link_changes.apply(changes, caller, self._now)
        self._links_may_have_changed()
        self._default_routes.refresh_soon(self._now)

    def _configuration_changed(self, event: events.ConfigurationChanged) -> None:
        """Apply all of it, or nothing."""
        network = event.network or self._state.live.network
        try:
            links = {name_of(network, link): change for link, change in event.links.items()}
        except RequestError as error:
            self._outbox.answer(event.token, error)
            return
        if network != self._state.live.network:
            self._take_up(network)
        settings = event.settings
        self._state.settings = settings
        self._state.hosts.set_age(settings.host_age_s)
        self._links.settings_changed()
        self._state.flows.set_ack_ratio(settings.ack_ratio)
        self._measuring.settings_changed(self._now)
        self._change_links(links)
        self._flows.capacity_changed(self._now)
        self._policing.settings_changed()
        kind, text = ClientEventKind.CONFIGURATION_APPLIED, "the configuration was applied"
        self._outbox.tell(kind, text, {"links": sorted(links)})
        self._outbox.answer(event.token, None)

    def _configuration_refused(self, event: events.ConfigurationRefused) -> None:
        text = f"the configuration is as before: {event.reason}"
        self._outbox.tell(ClientEventKind.CONFIGURATION_REFUSED, text, {"reason": event.reason}, "error")

    def _view_requested(self, event: events.ViewRequested) -> None:
        if event.view is ViewName.RULES:
            self._rule_counters.request(event.token, event.key, self._now)
        else:
            self._outbox.answer(event.token, self._queries.view(event, self._now))

    def _controller_stopping(self, event: events.ControllerStopping) -> None:
        """Take half-installed flows out, and all rules if so configured."""
        self._flows.stop(self._now)
        for switch in self._state.live.network.switches if event.remove_rules else ():
            if self._state.live.is_connected(switch):
                self._rules.wipe(switch)

    def _time_passed(self, _: events.TimePassed) -> None:
        self._transactions.tick(self._now)
        if self._flows.tick(self._now):
            return  # what else is due is an event of its own, after the rules of flows have been sent
        self._give_up_switches()
        if self._links.tick(self._now):
            self._links_may_have_changed()
        if not self._default_routes.tick(self._now):
            self._protection.tick(self._now)  # else in an event of its own, so that it knows what it costs
        self._measuring.tick(self._now)
        self._rule_counters.tick(self._now)
        self._audit.tick(self._now)
        self._neighbours.tick(self._now)
        self._state.faults.expire(self._now)
