"""What clients may look at, each part by itself: nobody pays for the whole to see one flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from controller.decide.component import Component, Context
from controller.decide.manager import FlowManager
from controller.decide.switch_rules import SwitchRules
from controller.errors import NotFound, unknown_flow
from controller.model.counters import RuleCount
from controller.model.events import ViewRequested
from controller.model.faults import FaultKind
from controller.model.live_views import LiveLinksView, LiveView, NodeState
from controller.model.messages import Result
from controller.model.requests import FlowQuery, ViewName
from controller.model.rules import (
    COOKIE_CLASSIFY,
    COOKIE_GROUPS,
    COOKIE_LABEL,
    TABLE_BYPASS,
    Action,
    Drop,
    GotoTable,
    Group,
    Output,
    RestoreLabel,
    Rule,
    RuleKey,
    ToGroup,
    ToTables,
    Untag,
    flow_number,
    is_counted,
    is_flow_cookie,
    is_policing_cookie,
    port_of_group,
)
from controller.model.views import (
    BucketView,
    FlowPage,
    FlowView,
    GroupView,
    PortView,
    Purpose,
    RulesView,
    RuleView,
    Sizes,
    SwitchDetailView,
)
from controller.state.flow import Flow


class Queries(Component):
    """Answers what clients ask about the state; changes nothing."""

    def __init__(self, shared: Context, rules: SwitchRules, flows: FlowManager) -> None:
        super().__init__(shared)
        self._rules = rules
        self._flows = flows

    def view(self, event: ViewRequested, now: float) -> Result:
        """Return a part of all, or the error that the client gets."""
        views: dict[ViewName, Callable[[], Result]] = {
            ViewName.FLOW: lambda: self._flow(event.key, now),
            ViewName.HEALTH: self._state.health,
            ViewName.HOSTS: self._state.host_views,
            ViewName.LINKS: self._state.links,
            ViewName.LIVE: lambda: self._live(now),
            ViewName.SIZES: self._sizes,
            ViewName.SWITCHES: self._switches,
            ViewName.TOPOLOGY: self._state.topology,
        }
        return views[event.view]()

    def page(self, query: FlowQuery, now: float) -> FlowPage:
        """Return the flows that match, in the order of their requests, up to a number."""
        matching = [flow for flow in self._state.flows if self._matches(flow, query)]
        rest = sorted((f for f in matching if f.number > query.after), key=lambda f: f.number)
        shown = rest[: query.limit]
        return FlowPage(
            flows=tuple(self._state.measured_view(flow, now) for flow in shown),
            total=len(matching),
            next_after=shown[-1].number if len(rest) > len(shown) else None,
        )

    def _matches(self, flow: Flow, query: FlowQuery) -> bool:
        ends = ((query.source, flow.source), (query.destination, flow.destination))
        return (
            all(wanted is None or wanted in (host.name, host.ip) for wanted, host in ends)
            and query.owner in (None, flow.belongs_to)
            and query.state in (None, flow.told_state)
            and (query.through is None or _leads_through(flow, query.through))
        )

    def _flow(self, flow_id: str, now: float) -> FlowView | NotFound:
        flow = self._state.flows.get(flow_id)
        if flow is None:
            return unknown_flow(flow_id)
        return self._state.measured_view(flow, now)

    def _live(self, now: float) -> LiveView:
        return LiveView(
            links=self._live_links(),
            nodes=tuple(
                self._switch_state(node.name) if node.kind == "switch" else self._host_state(node.name)
                for node in self._state.live.network.nodes
            ),
            flows=tuple(
                flow.summary(now, self._state.lost_links(flow), self._state.measured_bps(flow))
                for flow in self._state.flows
            ),
        )

    def _live_links(self) -> LiveLinksView:
        live, measured = self._state.live, self._state.measured
        return LiveLinksView(
            up=tuple(map(live.arc_is_up, live.arcs)),
            enabled=tuple(live.is_enabled(arc.link) for arc in live.arcs.values()),
            capacity_bps=tuple(arc.rate_bps for arc in live.arcs.values()),
            allocated_bps=tuple(map(self._state.allocated_bps, live.arcs)),
            measured_bps=tuple(map(measured.arc_bps, live.arcs)),
            unrequested_bps=tuple(map(measured.unrequested_bps, live.arcs)),
        )

    def _switch_state(self, name: str) -> NodeState:
        live = self._state.live
        return "up" if live.is_connected(name) else "away" if live.is_away(name) else "down"

    def _host_state(self, name: str) -> NodeState:
        host = self._state.hosts.find(name)
        return "up" if host is not None and self._state.hosts.is_reachable(host) else "down"

    def _switches(self) -> tuple[SwitchDetailView, ...]:
        counts = self._rule_counts()
        return tuple(self._switch(name, counts[name]) for name in self._state.live.network.switches)

    def _switch(self, name: str, rules: int) -> SwitchDetailView:
        live = self._state.live
        connected = live.is_connected(name)
        datapath_id = live.datapath_id(name)
        return SwitchDetailView(
            name=name,
            datapath_id=datapath_id,
            connected=connected,
            rules_confirmed=name in self._state.confirmed,
            state="connected" if connected else "away" if live.is_away(name) else "lost",
            flows=len(self._state.flows.through(name)),
            rules=rules,
            refusal=self._state.faults.get(name, FaultKind.RULES_REFUSED),
            ports=tuple(
                PortView(
                    port=arc.tail_port,
                    neighbour=arc.head,
                    link=arc.link,
                    up=live.port_is_live(datapath_id, arc.tail_port),
                    counters=self._state.measured.counters(datapath_id, arc.tail_port),
                )
                for arc in live.arcs_from(name)
            ),
        )

    def rules(self, switch: str, counts: Mapping[RuleKey, RuleCount]) -> RulesView | NotFound:
        """Return what a switch should have, with what its rules have counted as far as that is known."""
        live = self._state.live
        if switch not in live.network.switches:
            known = ", ".join(live.network.switches[:12])
            return NotFound("switch", f"there is no switch {switch!r} in the topology file; it has {known}")
        entries = self._rules.wanted(switch)
        flows = {flow.number: flow.id for flow in self._state.flows.through(switch)}
        groups = [entry for entry in entries if isinstance(entry, Group)]
        return RulesView(
            switch=switch,
            datapath_id=live.datapath_id(switch),
            rules=tuple(_rule(entry, flows, counts) for entry in entries if isinstance(entry, Rule)),
            groups=tuple(_group(entry) for entry in groups),
        )

    def _rule_counts(self) -> dict[str, int]:
        """Return how many rules each switch should have."""
        return {name: self._rules.count(name) for name in self._state.live.network.switches}

    def _sizes(self) -> Sizes:
        state, live = self._state, self._state.live
        return Sizes(
            flows=len(state.flows),
            degraded_flows=self._flows.interruptions.degraded,
            links_down=len(live.links_down()),
            connected_switches=sum(live.is_connected(name) for name in live.network.switches),
            learned_hosts=sum(host.learned for host in state.hosts.all()),
            allocated_bps=sum(flow.rate_bps for flow in state.flows),
            requested_bps=sum(flow.requested_bps for flow in state.flows),
            switch_rules=self._rule_counts(),
            switch_dropped_group_packets=dict(state.dropped_group_packets),
            link_capacity_bps={name: arc.rate_bps for name, arc in live.arcs.items()},
            link_allocated_bps={name: max(0.0, state.flows.load_bps(name)) for name in live.arcs},
            link_measured_bps={name: state.measured.arc_bps(name) for name in live.arcs},
            link_unrequested_bps={name: state.measured.unrequested_bps(name) for name in live.arcs},
        )


def _leads_through(flow: Flow, through: str) -> bool:
    ends = through.replace("->", "-").split("-")
    if len(ends) == 1:
        return any(through in path for path in flow.routes())
    steps = {step for path in flow.routes() for step in pairwise(path)}
    return (ends[0], ends[1]) in steps or (ends[1], ends[0]) in steps


def _rule(rule: Rule, flows: dict[int, str], counts: Mapping[RuleKey, RuleCount]) -> RuleView:
    is_flow = is_flow_cookie(rule.cookie) or is_policing_cookie(rule.cookie)
    count = counts.get(rule.key)
    return RuleView(
        table=rule.table,
        priority=rule.priority,
        match=rule.match.fields(),
        action=_action(rule.action) if rule.meter is None else f"meter:{rule.meter},{_action(rule.action)}",
        cookie=f"{rule.cookie:#x}",
        purpose=_purpose(rule),
        flow_id=flows.get(flow_number(rule.cookie)) if is_flow else None,
        packets=None if count is None else count.packets,
        bytes=None if count is None else count.bytes,
    )


def _purpose(rule: Rule) -> Purpose:
    if is_flow_cookie(rule.cookie):
        return "flow"
    if is_policing_cookie(rule.cookie):
        return "policing"
    if rule.table == TABLE_BYPASS:
        return "bypass"
    if rule.cookie == COOKIE_LABEL or is_counted(rule.cookie):
        return "label"
    return "classification" if rule.cookie in (COOKIE_CLASSIFY, COOKIE_GROUPS) else "default_route"


def _action(action: Action) -> str:
    if isinstance(action, Output | ToGroup):
        changes = [
            f"shift:{action.shift}," if action.shift else "",
            f"set_source:{action.source_mac}," if action.source_mac is not None else "",
            f"set_destination:{action.destination_mac}," if action.destination_mac is not None else "",
        ]
        target = f"output:{action.port}" if isinstance(action, Output) else f"group:{action.group}"
        tag = f"push_vlan:{action.tag}," if isinstance(action, Output) and action.tag is not None else ""
        return "".join(changes) + tag + target
    if isinstance(action, Untag):
        return f"pop_vlan,resubmit:{action.table}"
    if isinstance(action, RestoreLabel):
        return f"restore_label,set_source:{action.source_mac},goto:{action.table}"
    if isinstance(action, Drop):
        return "drop"
    if isinstance(action, GotoTable):
        return f"goto:{action.table}"
    if isinstance(action, ToTables):
        return f"resubmit:{action.also},goto:{action.table}"
    return "controller"


def _port_of(action: Output | ToGroup) -> int:
    if isinstance(action, Output):
        return action.port
    port = port_of_group(action.group)
    assert port is not None, "buckets lead to ports and the groups that guard them"
    return port


def _group(group: Group) -> GroupView:
    buckets = tuple(
        BucketView(weight=each.weight, port=_port_of(each.output), watch_port=each.watch_port)
        for each in group.buckets
    )
    return GroupView(number=group.number, buckets=buckets)
