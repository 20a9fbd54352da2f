"""How things are, for clients: immutable copies of the core's state, with the texts that REST documents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "FlowView",
    "HealthView",
    "HostView",
    "IngressView",
    "LinkView",
    "LostFlowView",
    "NodeView",
    "Snapshot",
    "SplitView",
    "StreamView",
    "SwitchView",
    "TopologyLinkView",
    "TopologyView",
]


def _field(description: str, **schema: Any) -> Any:
    """Return a dataclass field whose description and examples end up in the OpenAPI document."""
    return field(metadata={"description": description, **schema})


@dataclass(frozen=True, kw_only=True)
class StreamView:
    """One path of a flow: a TCP connection of its own, or a part of the one that a split flow has."""

    source_port: int = _field("The same for all paths of a split flow.")
    rate_bps: float = _field("Goodput allocated, bit/s.")
    delay_s: float = _field("One-way propagation delay along the path.")
    path: tuple[str, ...] = _field("Host, switches, host.")


@dataclass(frozen=True, kw_only=True)
class IngressView:
    """Where a flow enters the network."""

    switch: str
    port: int = _field("Of the switch, towards the source.")


@dataclass(frozen=True, kw_only=True)
class SplitView:
    """How the packets of one TCP connection are spread over the paths; all that a splitter needs."""

    ingress: IngressView
    source_ip: str
    destination_ip: str
    source_port: int
    destination_port: int
    shares: tuple[float, ...] = _field("Share of each path in the packets, in order of `streams`.")
    stamps: tuple[str, ...] = _field(
        "Ethernet source that sends a packet along each path.", examples=[["0a:50:50:00:01:00"]]
    )
    acks: str = _field("Path of the acknowledgements, as it was asked for.", examples=["shortest"])
    ack_path: tuple[str, ...] = _field("The same as nodes: host, switches, host.")


@dataclass(frozen=True, kw_only=True)
class FlowView:
    """A flow and what it was given."""

    flow_id: str
    state: Literal["installing", "active"]
    splitting: Literal["streams", "packets", "group"]
    source: str
    destination: str
    source_ip: str
    destination_ip: str
    destination_port: int
    requested_bps: float = _field("Goodput asked for, bit/s.")
    rate_bps: float = _field("Goodput granted: the sum over the streams.")
    objective: str | None = _field("Null where the paths were given by hand.")
    packet_bytes: int
    streams: tuple[StreamView, ...]
    lease_s: float = _field("Renew well before it has passed.")
    expires_in_s: float = _field("What is left of the lease.")
    lost_links: tuple[str, ...] = _field("Links of its paths that are down.")
    split: SplitView | None = _field("Null where each stream is a connection of its own.")


@dataclass(frozen=True, kw_only=True)
class LinkView:
    """One direction of a link."""

    link: str = _field("tail->head", examples=["S0->S4"])
    tail: str
    head: str
    capacity_bps: float = _field("Wire rate, bit/s.")
    delay_s: float
    up: bool
    allocated_bps: float = _field("Wire rate of all flows, with headers and acknowledgements.")
    free_bps: float


@dataclass(frozen=True, kw_only=True)
class HostView:
    """A host and where it is attached."""

    name: str
    ip: str
    mac: str
    switch: str
    port: int
    learned: bool = _field("Not in the topology file, but seen by its ARP packets.")
    reachable: bool = _field("Its switch is connected and its port is up.")


@dataclass(frozen=True, kw_only=True)
class SwitchView:
    """A switch of the topology file."""

    name: str
    datapath_id: int
    connected: bool
    rules_confirmed: bool = _field("It has confirmed all its default routes.")


@dataclass(frozen=True, kw_only=True)
class LostFlowView:
    """A flow that runs over a lost link."""

    flow_id: str
    links: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class HealthView:
    """Is the network as it should be?"""

    status: Literal["ok", "degraded"]
    ready: bool = _field(
        "Every switch is connected and has confirmed its default routes, and every link is up."
    )
    switches: tuple[SwitchView, ...]
    links_down: tuple[str, ...]
    faults: tuple[str, ...] = _field("What was found that the topology file does not have.")
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
class Snapshot:
    """Everything at one moment."""

    flows: tuple[FlowView, ...]
    links: tuple[LinkView, ...]
    hosts: tuple[HostView, ...]
    topology: TopologyView
    health: HealthView
