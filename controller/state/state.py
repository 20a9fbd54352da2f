"""What the controller knows: network, hosts, flows and settings."""

from __future__ import annotations

from itertools import chain

from controller.model.faults import Faults
from controller.model.journal import Journaled, JournaledDict, JournaledSet
from controller.model.rules import Group, Rule
from controller.model.settings import Settings
from controller.model.views import (
    FlowView,
    HealthView,
    HostView,
    LinkView,
    LostFlowView,
    NodeView,
    SwitchView,
    TopologyLinkView,
    TopologyView,
)
from controller.state.flow import Flow
from controller.state.flow_table import FlowTable
from controller.state.host_paths import HostPaths
from controller.state.hosts import HostTable
from controller.state.live_network import LiveNetwork, arc_name, arcs_of
from controller.state.measured_load import MeasuredLoad
from controller.wire import allocatable_bps
from topologies.model import Arc, Network


class State(Journaled):
    """The one place where the controller's knowledge is."""

    def __init__(self, network: Network, settings: Settings) -> None:
        self.settings = settings
        self.live = LiveNetwork(network)
        self.paths = HostPaths(self.live)
        self.hosts = HostTable(self.live, settings.host_age_s)
        self.flows = FlowTable(settings.ack_ratio)
        self.measured = MeasuredLoad(self.live)
        # Switches that have confirmed all fixed rules, and all others that they had to get with them.
        self.confirmed: JournaledSet[str] = JournaledSet()
        self.metered_ports: JournaledDict[str, tuple[int, ...]] = JournaledDict()  # of connected switches
        self.dropped_group_packets: JournaledDict[str, int] = JournaledDict()  # by switch, as far as known
        self.faults = Faults()

    def succeed(self, former: State, now: float) -> None:
        """Know what was known, but for flows, of a network as its file was before and is still."""
        self.live.succeed(former.live)
        self.flows.succeed(former.flows)
        self.hosts.restore(former.hosts.learned_records(), now)
        self.faults = former.faults
        for switch in set(former.live.network.switches) - set(self.live.network.switches):
            self.faults.clear_all(switch)

    def pinned_rules(self, switch: str) -> tuple[Rule | Group, ...]:
        """Return the rules and groups that a switch should have of the flows that are complete."""
        next_hops = self.live.ports
        return tuple(
            entry
            for flow in self.flows.through(switch)
            if flow.is_active and switch in flow.rule_switches(next_hops)
            for at, entry in flow.entries(next_hops)
            if at == switch
        )

    def pinned_rule_count(self, switch: str) -> int:
        """Return how many of them are rules."""
        flows, next_hops = self.flows.through(switch), self.live.ports
        return sum(flow.rule_count(switch, next_hops) for flow in flows if flow.is_active)

    def view(self, flow: Flow, now: float) -> FlowView:
        """Return an immutable copy of a flow for its owner; what it carries is not looked up."""
        return flow.view(now, self.lost_links(flow))

    def measured_view(self, flow: Flow, now: float) -> FlowView:
        """Return an immutable copy of a flow, with what it carries."""
        total_bps = None
        if flow.split is not None and flow.split.mode == "group":
            total_bps = self.measured.pinned_bps(flow.source.switch, *flow.tcp_connections())
        return flow.view(now, self.lost_links(flow), self.measured_bps(flow), total_bps)

    def measured_bps(self, flow: Flow) -> tuple[float | None, ...]:
        """Return the wire rate that was counted of each stream of a flow."""
        return tuple(
            None if counted is None else self.measured.pinned_bps(*counted) for counted in flow.counted_by()
        )

    def allocatable_bps(self, arc: str) -> float:
        """Return what flows may take of a link in one direction, named as `S0->S4`."""
        return allocatable_bps(self.live.arcs[arc].rate_bps, self.settings.reserved_share)

    def offered_bps(self, arc: str) -> float:
        """Return what the optimum may hand out of an arc: not what is left to traffic that nobody asked for.

        What flows have already is not taken from them.
        """
        rate_bps = self.live.arcs[arc].rate_bps
        offered_bps = allocatable_bps(rate_bps, self.settings.reserved_share)
        yielded_bps = self.measured.yielded_bps(arc)
        if not yielded_bps:
            return offered_bps
        left_bps = min(offered_bps, rate_bps - yielded_bps)
        return max(left_bps, min(offered_bps, self.flows.load_bps(arc)))

    def lost_links(self, flow: Flow) -> tuple[str, ...]:
        """Return the links of a flow's paths that are down."""
        if self.live.is_whole:
            return ()
        lost = [self.live.lost_links(path) for path in flow.routes()]
        return tuple(dict.fromkeys(chain.from_iterable(lost))) if any(lost) else ()

    def flows_on_lost(self, link: str) -> list[Flow]:
        """Return the flows whose paths lead over a link; none if it is up."""
        one, other = self.live.network.link(link).ends
        arcs = {arc_name(one, other), arc_name(other, one)}
        if any(self.live.arc_is_up(arc) for arc in arcs):
            return []
        through = self.flows.through(other if self.live.is_host(one) else one)
        return [flow for flow in through if any(not arcs.isdisjoint(arcs_of(p)) for p in flow.routes())]

    def allocated_bps(self, arc: str) -> float:
        """Return the wire rate that all flows take of a link in one direction, named as `S0->S4`."""
        # The sums are kept up flow by flow: without rounding, links that are empty again have 1e-10 bit/s.
        return max(0.0, round(self.flows.load_bps(arc), 3))

    def links(self) -> tuple[LinkView, ...]:
        """Return both directions of all links, for clients."""
        return tuple(self._link(name, arc) for name, arc in self.live.arcs.items())

    def link(self, name: str) -> tuple[LinkView, ...]:
        """Return both directions of a link, by its name in the file."""
        return tuple(self._link(key, arc) for key, arc in self.live.arcs.items() if arc.link == name)

    def _link(self, name: str, arc: Arc) -> LinkView:
        allocated_bps = self.allocated_bps(name)
        measured_bps = self.measured.arc_bps(name)
        return LinkView(
            link=name,
            name=arc.link,
            tail=arc.tail,
            head=arc.head,
            capacity_bps=arc.rate_bps,
            delay_s=arc.delay_s,
            up=self.live.arc_is_up(name),
            enabled=self.live.is_enabled(arc.link),
            revision=self.live.revision(arc.link),
            allocated_bps=allocated_bps,
            free_bps=max(0.0, arc.rate_bps - allocated_bps - self.measured.yielded_bps(name)),
            utilisation=allocated_bps / arc.rate_bps,
            measured_bps=measured_bps,
            measured_utilisation=None if measured_bps is None else measured_bps / arc.rate_bps,
            unrequested_bps=self.measured.unrequested_bps(name),
        )

    def host_views(self) -> tuple[HostView, ...]:
        """Return all hosts, for clients."""
        return tuple(
            HostView(
                name=host.name,
                addresses=tuple(each.ip for each in self.hosts.named(host.name)),
                mac=host.mac,
                switch=host.switch,
                port=host.port,
                learned=host.learned,
                reachable=self.hosts.is_reachable(host),
                vlan=self.live.tag_at(self.live.datapath_id(host.switch), host.port),
            )
            for host in self.hosts.all()
            if host == self.hosts.find(host.name)
        )

    def topology(self) -> TopologyView:
        """Return the network of the file and what of it is up, for clients."""
        network = self.live.network
        down = set(self.live.links_down())
        return TopologyView(
            name=network.name,
            description=network.description,
            nodes=tuple(
                NodeView(name=node.name, kind=node.kind, x=node.x, y=node.y) for node in network.nodes
            ),
            links=tuple(
                TopologyLinkView(
                    ends=link.ends,
                    ports=(self.live.ports[link.ends], self.live.ports[link.ends[1], link.ends[0]]),
                    rate_bps=self.live.arcs[arc_name(*link.ends)].rate_bps,
                    delay_s=self.live.arcs[arc_name(*link.ends)].delay_s,
                    up=link.name not in down,
                )
                for link in network.links
            ),
        )

    def health(self) -> HealthView:
        """Return whether all is as it should be, for clients."""
        switches = tuple(
            SwitchView(
                name=name,
                datapath_id=self.live.datapath_id(name),
                connected=self.live.is_connected(name),
                rules_confirmed=name in self.confirmed,
            )
            for name in self.live.network.switches
        )
        down = self.live.links_down()
        lost = [(flow.id, self.lost_links(flow)) for flow in self.flows]
        faults = self.live.faults() + self.faults.texts()
        ready = not down and all(switch.connected and switch.rules_confirmed for switch in switches)
        return HealthView(
            status="ok" if ready and not faults else "degraded",
            ready=ready,
            switches=switches,
            links_down=down,
            faults=faults,
            flows_on_lost_links=tuple(LostFlowView(flow_id=id_, links=links) for id_, links in lost if links),
            flows=len(self.flows),
        )
