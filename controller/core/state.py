"""What the controller knows: network, hosts, flows and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.core.journal import Journaled, JournaledDict, JournaledSet
from controller.core.views import (
    FlowView,
    HealthView,
    HostView,
    LinkView,
    LostFlowView,
    NodeView,
    Snapshot,
    SwitchView,
    TopologyLinkView,
    TopologyView,
)
from controller.flows.flow import Flow, FlowTable, arc_loads
from controller.network.hosts import HostTable
from controller.network.live_network import LiveNetwork
from controller.wire import DEFAULT_ACK_RATIO, allocatable_bps
from topologies.model import Network

__all__ = ["Settings", "State"]


@dataclass(frozen=True)
class Settings:
    """How the controller behaves.

    Attributes:
        objective: For requests that name none.
        lease_s: A flow that is not renewed for so long ends.
        ack_ratio: Load of the acknowledgements on the reverse path, per bit of data.
        reserved_share: Share of every link that no flow is given: it is for default traffic.
        confirm_timeout_s: A switch that has not confirmed a stage of rules after this fails the request.
        default_routing: Of all traffic without an allocation: `shortest`, the one path of least delay, or
            `ecmp`, all paths of least delay by a hash of each connection.
        probe_interval_s: Each port is probed for its link so often; less often where there are many.
        silence_s: A link that answers no probe for so long is lost.
        switch_grace_s: A switch whose connection ended is assumed to forward as before for so long; after a
            restart of the controller, all are.
        host_age_s: A learned host that says nothing for so long is forgotten.
        lldp_key: Signs probes, so that hosts cannot forge them.
        min_gain: A running flow is moved to better paths only where it gains more than this share of what it
            has asked for.
        moves_per_s: So many running flows are moved to better paths at most.
        fast_failover: Switches heal a port that goes down by themselves, with groups (`rules.protection`).
        boot_id: Begins the ids of flows where nothing else makes them.
    """

    objective: str = "max_throughput_min_delay"
    lease_s: float = 30.0
    ack_ratio: float = DEFAULT_ACK_RATIO
    reserved_share: float = 0.0
    confirm_timeout_s: float = 3.0
    default_routing: Literal["shortest", "ecmp"] = "shortest"
    probe_interval_s: float = 0.1
    silence_s: float = 0.4
    switch_grace_s: float = 10.0
    host_age_s: float = 300.0
    lldp_key: bytes = b""
    min_gain: float = 0.01
    moves_per_s: float = 50.0
    fast_failover: bool = True
    boot_id: str = "f"


class State(Journaled):
    """The one place where the controller's knowledge is."""

    def __init__(self, network: Network, settings: Settings) -> None:
        self.settings = settings
        self.live = LiveNetwork(network)
        self.hosts = HostTable(self.live, settings.host_age_s)
        self.flows = FlowTable(settings.ack_ratio)
        # Switches that have confirmed all default routes, and what they refused.
        self.confirmed: JournaledSet[str] = JournaledSet()
        self.refusals: JournaledDict[str, str] = JournaledDict()

    def snapshot(self, now: float) -> Snapshot:
        """Return an immutable copy of everything that clients may see."""
        return Snapshot(
            flows=tuple(self.view(flow, now) for flow in self.flows),
            links=self._links(),
            hosts=self._hosts(),
            topology=self._topology(),
            health=self._health(),
        )

    def view(self, flow: Flow, now: float) -> FlowView:
        """Return an immutable copy of a flow for clients."""
        return flow.view(now, self.lost_links(flow))

    def allocatable_bps(self, arc: str) -> float:
        """Return what flows may take of a link in one direction, named as `S0->S4`."""
        return allocatable_bps(self.live.arcs[arc].rate_bps, self.settings.reserved_share)

    def lost_links(self, flow: Flow) -> tuple[str, ...]:
        """Return the links of a flow's paths that are down."""
        if self.live.is_whole:
            return ()
        return tuple(dict.fromkeys(link for path in flow.routes() for link in self.live.lost_links(path)))

    def _links(self) -> tuple[LinkView, ...]:
        loads = arc_loads(self.flows, self.settings.ack_ratio)
        return tuple(
            LinkView(
                link=name,
                tail=arc.tail,
                head=arc.head,
                capacity_bps=arc.rate_bps,
                delay_s=arc.delay_s,
                up=self.live.arc_is_up(name),
                allocated_bps=loads.get(name, 0.0),
                free_bps=max(0.0, arc.rate_bps - loads.get(name, 0.0)),
            )
            for name, arc in self.live.arcs.items()
        )

    def _hosts(self) -> tuple[HostView, ...]:
        return tuple(
            HostView(
                name=host.name,
                ip=host.ip,
                mac=host.mac,
                switch=host.switch,
                port=host.port,
                learned=host.learned,
                reachable=self.hosts.is_reachable(host),
            )
            for host in self.hosts.all()
        )

    def _topology(self) -> TopologyView:
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
                    rate_bps=link.rate_bps,
                    delay_s=link.delay_s,
                    up=link.name not in down,
                )
                for link in network.links
            ),
        )

    def _health(self) -> HealthView:
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
        faults = self.live.faults() + tuple(self.refusals.values())
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
