"""How things are, for clients: immutable copies of the core's state, with the schema that REST documents."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

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


class _View(BaseModel):
    model_config = ConfigDict(frozen=True)


class StreamView(_View):
    """One path of a flow: a TCP connection of its own, or a part of the one that a split flow has."""

    source_port: int = Field(description="The same for all paths of a split flow.")
    rate_bps: float = Field(description="Goodput allocated, bit/s.")
    delay_s: float = Field(description="One-way propagation delay along the path.")
    path: tuple[str, ...] = Field(description="Host, switches, host.")


class IngressView(_View):
    """Where a flow enters the network."""

    switch: str
    port: int = Field(description="Of the switch, towards the source.")


class SplitView(_View):
    """How the packets of one TCP connection are spread over the paths; all that a splitter needs."""

    ingress: IngressView
    source_ip: str
    destination_ip: str
    source_port: int
    destination_port: int
    shares: tuple[float, ...] = Field(description="Share of each path in the packets, in order of `streams`.")
    stamps: tuple[str, ...] = Field(
        description="Ethernet source that sends a packet along each path.", examples=[["0a:50:50:00:01:00"]]
    )
    acks: str = Field(description="Path of the acknowledgements, as it was asked for.", examples=["shortest"])
    ack_path: tuple[str, ...] = Field(description="The same as nodes: host, switches, host.")


class FlowView(_View):
    """A flow and what it was given."""

    flow_id: str
    state: Literal["installing", "active"]
    splitting: Literal["streams", "packets", "group"]
    source: str
    destination: str
    source_ip: str
    destination_ip: str
    destination_port: int
    requested_bps: float = Field(description="Goodput asked for, bit/s.")
    rate_bps: float = Field(description="Goodput granted: the sum over the streams.")
    objective: str | None = Field(description="Null where the paths were given by hand.")
    packet_bytes: int
    streams: tuple[StreamView, ...]
    lease_s: float = Field(description="Renew well before it has passed.")
    expires_in_s: float = Field(description="What is left of the lease.")
    lost_links: tuple[str, ...] = Field(description="Links of its paths that are down.")
    split: SplitView | None = Field(description="Null where each stream is a connection of its own.")


class LinkView(_View):
    """One direction of a link."""

    link: str = Field(description="tail->head", examples=["S0->S4"])
    tail: str
    head: str
    capacity_bps: float = Field(description="Wire rate, bit/s.")
    delay_s: float
    up: bool
    allocated_bps: float = Field(description="Wire rate of all flows, with headers and acknowledgements.")
    free_bps: float


class HostView(_View):
    """A host and where it is attached."""

    name: str
    ip: str
    mac: str
    switch: str
    port: int
    learned: bool = Field(description="Not in the topology file, but seen by its ARP packets.")
    reachable: bool = Field(description="Its switch is connected and its port is up.")


class SwitchView(_View):
    """A switch of the topology file."""

    name: str
    datapath_id: int
    connected: bool
    rules_confirmed: bool = Field(description="It has confirmed all its default routes.")


class LostFlowView(_View):
    """A flow that runs over a lost link."""

    flow_id: str
    links: tuple[str, ...]


class HealthView(_View):
    """Is the network as it should be?"""

    status: Literal["ok", "degraded"]
    ready: bool = Field(
        description="Every switch is connected and has confirmed its default routes, and every link is up."
    )
    switches: tuple[SwitchView, ...]
    links_down: tuple[str, ...]
    faults: tuple[str, ...] = Field(description="What was found that the topology file does not have.")
    flows_on_lost_links: tuple[LostFlowView, ...]
    flows: int


class NodeView(_View):
    """A node of the topology file."""

    name: str
    kind: Literal["host", "switch"]
    x: float | None
    y: float | None


class TopologyLinkView(_View):
    """A link of the topology file (both directions)."""

    ends: tuple[str, str]
    ports: tuple[int, int]
    rate_bps: float
    delay_s: float
    up: bool


class TopologyView(_View):
    """The network of the topology file, and what of it is up."""

    name: str
    description: str
    nodes: tuple[NodeView, ...]
    links: tuple[TopologyLinkView, ...]


class Snapshot(_View):
    """Everything at one moment."""

    flows: tuple[FlowView, ...]
    links: tuple[LinkView, ...]
    hosts: tuple[HostView, ...]
    topology: TopologyView
    health: HealthView
