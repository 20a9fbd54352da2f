"""What the core wants done: messages to switches, answers to clients, and lines for the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.core.views import FlowView, Snapshot
from controller.errors import RequestError
from controller.rules.model import Entry

__all__ = [
    "AllocationChanged",
    "Answer",
    "CloseConnection",
    "DatapathMessage",
    "FlowEnded",
    "InstallRules",
    "LeaseResult",
    "Message",
    "Notify",
    "PacketOut",
    "RemoveGroup",
    "RemoveRules",
    "Report",
    "Result",
]


@dataclass(frozen=True)
class InstallRules:
    """Install entries in order and confirm with the barrier; `wipe` first removes all that the switch has."""

    datapath_id: int
    entries: tuple[Entry, ...]
    barrier: int
    wipe: bool = False


@dataclass(frozen=True)
class RemoveRules:
    """Remove all rules that carry a cookie."""

    datapath_id: int
    cookie: int


@dataclass(frozen=True)
class RemoveGroup:
    """Remove a group, and with it every rule that leads to it."""

    datapath_id: int
    group: int


@dataclass(frozen=True)
class CloseConnection:
    """End a switch's connection: it will come back, and what it has is compared with what it should have."""

    datapath_id: int
    reason: str


@dataclass(frozen=True)
class PacketOut:
    """Send a frame out of a port."""

    datapath_id: int
    port: int
    frame: bytes


@dataclass(frozen=True)
class LeaseResult:
    """The flows whose lease was renewed, and those that do not exist."""

    renewed: tuple[str, ...]
    unknown: tuple[str, ...]


Result = FlowView | Snapshot | LeaseResult | RequestError | None


@dataclass(frozen=True)
class Answer:
    """The answer to the event with this token; an error is raised by the service layer, never by the core."""

    token: int
    result: Result


@dataclass(frozen=True)
class AllocationChanged:
    """A running flow has new rates; its streams and their paths stay."""

    flow: FlowView


@dataclass(frozen=True)
class FlowEnded:
    """A flow ended without its client's asking."""

    flow_id: str
    reason: str


@dataclass(frozen=True)
class Notify:
    """A change that the session that owns a flow is told of."""

    owner: str
    change: AllocationChanged | FlowEnded


@dataclass(frozen=True)
class Report:
    """A line for the log. `level` is a name of the logging module, `data` goes beside the text."""

    level: str
    text: str
    data: Mapping[str, object] = field(default_factory=dict)


DatapathMessage = InstallRules | RemoveRules | RemoveGroup | PacketOut | CloseConnection
Message = DatapathMessage | Answer | Notify | Report
