"""How things are, for clients: immutable copies of the core's state, with the texts that REST documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.model.api_field import api_field
from controller.model.counters import PortCounters
from controller.model.fast_init import fast_init
from controller.model.requests import Protocol, Splitting


@fast_init
@dataclass(frozen=True, kw_only=True)
class StreamView:
    """One path of a flow: a TCP connection of its own, or a part of the one that a split flow has."""

    source_port: int = api_field("The same for all paths of a split flow.")
    rate_bps: float = api_field("Goodput allocated, bit/s.")
    wire_bps: float = api_field("The same with all headers: what it takes of each link, bit/s.")
    measured_bps: float | None = api_field(
        "Wire rate counted where it enters the network, averaged over three intervals; null where it is not."
    )
    delay_s: float = api_field("One-way propagation delay along the path.")
    path: tuple[str, ...] = api_field("Host, switches, host.")
    is_opening: bool = api_field("Added to the running flow; its host has not said yet that it is open.")


@dataclass(frozen=True, kw_only=True)
class IngressView:
    """Where a flow enters the network."""

    switch: str
    port: int = api_field("Of the switch, towards the source.")


@dataclass(frozen=True, kw_only=True)
class SplitView:
    """How the packets of one TCP connection are spread over the paths; all that a splitter needs."""

    ingress: IngressView
    source_ip: str
    destination_ip: str
    source_port: int
    destination_port: int
    shares: tuple[float, ...] = api_field("Share of each path in the packets, in order of `streams`.")
    stamps: tuple[str, ...] = api_field(
        "Ethernet source that sends a packet along each path.", examples=[["0a:50:50:00:01:00"]]
    )
    acks: str = api_field("Path of the acknowledgements, as it was asked for.", examples=["shortest"])
    ack_path: tuple[str, ...] = api_field("The same as nodes: host, switches, host.")


@dataclass(frozen=True, kw_only=True)
class FlowSummaryView:
    """A flow, without what only its requester needs."""

    flow_id: str
    owner: str | None = api_field("Who requested it; null where no tokens are asked for.")
    revision: int = api_field("Counts its changes; the ETag of the flow.")
    state: Literal["installing", "active"]
    source: str
    destination: str
    destination_port: int
    objective: str | None = api_field("Null where the paths were given by hand.")
    requested_bps: float = api_field("Goodput asked for, bit/s.")
    rate_bps: float = api_field("Goodput granted: the sum over the streams.")
    lease_s: float = api_field("Renew well before it has passed.")
    expires_in_s: float = api_field("What is left of the lease.")
    lost_links: tuple[str, ...] = api_field("Links of its paths that are down.")
    streams: tuple[StreamView, ...]


@fast_init
@dataclass(frozen=True, kw_only=True)
class FlowView(FlowSummaryView):
    """A flow and what it was given."""

    splitting: Splitting
    source_ip: str
    destination_ip: str
    protocol: Protocol
    measured_bps: float | None = api_field("Wire rate counted: the sum over the streams; null where one is.")
    packet_bytes: int
    split: SplitView | None = api_field("Null where each stream is a connection of its own.")
    may_grow: bool = api_field("Its host opens and closes streams as it is told over the control channel.")


@dataclass(frozen=True, kw_only=True)
class LinkView:
    """One direction of a link."""

    link: str = api_field("tail->head", examples=["S0->S4"])
    name: str = api_field("Of both directions together, as the topology file has it.", examples=["S0-S4"])
    tail: str
    head: str
    capacity_bps: float = api_field("Wire rate, bit/s.")
    delay_s: float
    up: bool
    enabled: bool = api_field("False: it may not be used, whether it is there or not.")
    revision: int = api_field("Counts its changes by clients; the ETag of the link.")
    allocated_bps: float = api_field("Wire rate of all flows, with headers and acknowledgements.")
    free_bps: float = api_field("Of the capacity, what is neither allocated nor left to unrequested traffic.")
    utilisation: float = api_field("Share of the capacity that is allocated.")
    measured_bps: float | None = api_field(
        "Wire rate counted by the switch over the last interval; null where none is."
    )
    measured_utilisation: float | None = api_field("The same as a share of the capacity.")
    unrequested_bps: float | None = api_field(
        "Lasting traffic that belongs to no flow; null where it is not measured."
    )


@dataclass(frozen=True, kw_only=True)
class HostView:
    """A host and where it is attached."""

    name: str
    addresses: tuple[str, ...] = api_field("Of IPv4, of IPv6, or both.")
    mac: str
    switch: str
    port: int
    learned: bool = api_field(
        "Not in the topology file, but seen by its ARP packets or neighbour solicitations."
    )
    reachable: bool = api_field("Its switch is connected and its port is up.")
    vlan: int | None = api_field("The VLAN tag of its frames at its port; null without.")


@dataclass(frozen=True, kw_only=True)
class SwitchView:
    """A switch of the topology file."""

    name: str
    datapath_id: int
    connected: bool
    rules_confirmed: bool = api_field("It has confirmed all its default routes.")


@dataclass(frozen=True, kw_only=True)
class PortView:
    """A port of a switch that the topology file has."""

    port: int
    neighbour: str
    link: str
    up: bool = api_field("The port itself; whether packets pass the link is the link's `up`.")
    counters: PortCounters | None = api_field("As they were last read; null where they are not.")


@dataclass(frozen=True, kw_only=True)
class SwitchDetailView(SwitchView):
    """A switch, its ports and how much it has to do."""

    state: Literal["connected", "away", "lost"] = api_field(
        "away: its connection ended a moment ago, and it is assumed to forward still."
    )
    flows: int = api_field("Flows whose paths lead through it.")
    rules: int = api_field("Rules that it should have.")
    refusal: str | None = api_field("Why it refused its default routes; null if it did not.")
    ports: tuple[PortView, ...]


Purpose = Literal["classification", "default_route", "bypass", "label", "flow", "policing"]


@dataclass(frozen=True, kw_only=True)
class RuleView:
    """A forwarding rule."""

    table: int
    priority: int
    match: dict[str, str | int] = api_field("The fields it looks at; all packets match if there are none.")
    action: str = api_field(
        "output:<port>, group:<number>, goto:<table>, controller, drop; before it shift:<bits> of the label, "
        "set_source:<address>, set_destination:<address>, restore_label, meter:<number> or resubmit:<table>.",
        examples=["output:2"],
    )
    cookie: str = api_field("As `ovs-ofctl dump-flows` prints it.", examples=["0x4d53000200000001"])
    purpose: Purpose
    flow_id: str | None = api_field("The flow that it is for.")
    packets: int | None = api_field("That matched it; null where the switch does not say.")
    bytes: int | None = api_field("Of these packets.")


@dataclass(frozen=True, kw_only=True)
class BucketView:
    """A choice of a group."""

    weight: int
    port: int
    watch_port: int | None = api_field("Taken only while this port is up; null in a select group.")


@dataclass(frozen=True, kw_only=True)
class GroupView:
    """A select group: each connection takes one of its buckets; with watched ports, a fast-failover group."""

    number: int
    buckets: tuple[BucketView, ...]


@dataclass(frozen=True, kw_only=True)
class RulesView:
    """What a switch should have."""

    switch: str
    datapath_id: int
    rules: tuple[RuleView, ...]
    groups: tuple[GroupView, ...]


@dataclass(frozen=True, kw_only=True)
class LostFlowView:
    """A flow that runs over a lost link."""

    flow_id: str
    links: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class HealthView:
    """Is the network as it should be?"""

    status: Literal["ok", "degraded"]
    ready: bool = api_field(
        "Every switch is connected and has confirmed its default routes, no others are about to follow, and "
        "every link is up."
    )
    switches: tuple[SwitchView, ...]
    links_down: tuple[str, ...]
    faults: tuple[str, ...] = api_field(
        "What is wrong beside that: switches and links that the topology file does not have, rules that were "
        "refused, switches that another controller decides for."
    )
    flows_on_lost_links: tuple[LostFlowView, ...]
    flows: int


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """A node of the topology file."""

    name: str
    kind: Literal["host", "switch"]
    x: float | None
    y: float | None


@dataclass(frozen=True, kw_only=True)
class TopologyLinkView:
    """A link of the topology file (both directions)."""

    ends: tuple[str, str]
    ports: tuple[int, int]
    rate_bps: float
    delay_s: float
    up: bool


@dataclass(frozen=True, kw_only=True)
class TopologyView:
    """The network of the topology file, and what of it is up."""

    name: str
    description: str
    nodes: tuple[NodeView, ...]
    links: tuple[TopologyLinkView, ...]


@dataclass(frozen=True, kw_only=True)
class FlowPage:
    """Some flows, and where the next page begins."""

    flows: tuple[FlowView, ...]
    total: int = api_field("Flows that match, on all pages.")
    next_after: int | None = api_field("Null on the last page.")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much there is of everything: the figures of `/metrics` with these names, by switch or link."""

    flows: int = api_field("Flows.")
    degraded_flows: int = api_field("Flows that carry less than before a link was lost.")
    links_down: int = api_field("Links of the topology file that are down.")
    connected_switches: int = api_field("Switches that are connected.")
    learned_hosts: int = api_field("Hosts learned from their ARP packets.")
    allocated_bps: float = api_field("Goodput of all flows, bit/s.")
    requested_bps: float = api_field("Goodput that all flows have asked for, bit/s.")
    switch_rules: dict[str, int] = api_field("Rules that a switch should have.")
    switch_dropped_group_packets: dict[str, int] = api_field(
        "Packets to multicast and broadcast addresses that a switch has dropped."
    )
    link_capacity_bps: dict[str, float] = api_field("Of one direction of a link.")
    link_allocated_bps: dict[str, float] = api_field("Wire rate of all flows over it, with acknowledgements.")
    link_measured_bps: dict[str, float | None] = api_field("Wire rate that its switch has counted.")
    link_unrequested_bps: dict[str, float | None] = api_field(
        "Wire rate of lasting traffic that belongs to no flow."
    )
