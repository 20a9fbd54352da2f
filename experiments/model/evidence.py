"""What shows that a protocol did what its name says, in one shape for all engines; None is "not measured"."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from experiments.model.data import Data


class PathEvidence(Data):
    """One path of a flow: its share as it was asked for, and as it came about."""

    path: list[str]
    source_port: int | None = None
    asked: float | None = None
    """Share of the flow that was allocated to it, 0 to 1."""
    realised: float | None = None
    """Share that went there: of packets where they were counted, else of bytes."""
    packets: int | None = None
    """Packets that were sent along it, counted where paths are chosen."""
    forwarded_packets: int | None = None
    """Packets that the rules of the path have counted."""


class ConnectionEvidence(Data):
    """One TCP connection, stream or subflow, as the side that sends it counts."""

    source_ip: str | None = None
    source_port: int | None = None
    congestion_control: str | None = None
    options: list[str] = Field(default_factory=list)
    """Those of TCP that both ends agreed on, as `ss` calls them."""
    rtt_s: float | None = None
    """Smoothed round-trip time."""
    counters: dict[str, float] = Field(default_factory=dict)
    """As its source names them: Linux (`ss -ti`) or the simulator's TCP."""


class FlowEvidence(Data):
    """One flow."""

    paths: list[PathEvidence] = Field(default_factory=list)
    """Empty where the flow's path is that of its allocation."""
    split_by: str | None = None
    """What chooses the path of a packet: `packets` (at random), `group` (a select group by connection)."""
    splitter: str | None = None
    """Interface and mode of the program that draws the paths."""
    ack_rule: str | None = None
    """Where the acknowledgements of a split flow were to go."""
    ack_path: list[str] | None = None
    """Where they went."""
    connections: list[ConnectionEvidence] = Field(default_factory=list)
    is_verified: bool = True
    """False: no connection was there when its kernel was asked; another one between these hosts vouches."""
    counters: dict[str, float] = Field(default_factory=dict)
    """Counters of the protocol above its connections, by the simulator."""


class Evidence(Data):
    """One run."""

    flows: dict[str, FlowEvidence] = Field(default_factory=dict)
    hosts: dict[str, dict[str, int]] = Field(default_factory=dict)
    """The kernel's counters of TCP and MPTCP (`nstat`) of each host with flows."""
    network: dict[str, int] = Field(default_factory=dict)
    """The simulator's counters of all packets."""
    further: dict[str, Any] = Field(default_factory=dict)
    """What a protocol's agent says beyond this."""
