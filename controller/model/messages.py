"""What the core wants done: messages to switches, answers to clients, and lines for the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.errors import RequestError
from controller.model.client_events import ClientEventKind
from controller.model.events import FlowRequested
from controller.model.live_views import LiveView
from controller.model.records import Change
from controller.model.rules import Entry, Rule
from controller.model.state_copy import StateCopy
from controller.model.views import (
    FlowPage,
    FlowView,
    HealthView,
    HostView,
    LinkView,
    RulesView,
    Sizes,
    Snapshot,
    SwitchDetailView,
    TopologyView,
)

__all__ = [
    "Abandoned",
    "Acknowledge",
    "AllocationChanged",
    "Answer",
    "ClientMessage",
    "CloseConnection",
    "DatapathMessage",
    "FlowEnded",
    "InstallRules",
    "IntroduceSwitch",
    "LeaseResult",
    "Message",
    "Notify",
    "PacketOut",
    "Postpone",
    "ReadCounters",
    "ReadInstalled",
    "ReadRuleCounters",
    "RemoveGroup",
    "RemoveRule",
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
class RemoveRule:
    """Remove one rule while others of its cookie stay."""

    datapath_id: int
    rule: Rule


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
class Acknowledge:
    """What follows for a switch was decided on this announcement; what was decided before is dropped."""

    datapath_id: int
    announcement: int


@dataclass(frozen=True)
class IntroduceSwitch:
    """Say again that a switch is connected, if it is, and what it has."""

    datapath_id: int


@dataclass(frozen=True)
class PacketOut:
    """Send a frame out of a port."""

    datapath_id: int
    port: int
    frame: bytes


@dataclass(frozen=True)
class ReadCounters:
    """Ask a switch what it has counted at its ports and, if wanted, for the rules that pin connections."""

    datapath_id: int
    pinned: bool


@dataclass(frozen=True)
class ReadInstalled:
    """Ask a switch which rules, groups and meters it has."""

    datapath_id: int


@dataclass(frozen=True)
class ReadRuleCounters:
    """Ask a switch what all its rules have counted."""

    datapath_id: int


@dataclass(frozen=True)
class LeaseResult:
    """The flows whose lease was renewed, those that do not exist, and those of other clients."""

    renewed: tuple[str, ...]
    unknown: tuple[str, ...]
    forbidden: tuple[str, ...] = ()


Result = (
    FlowView
    | FlowPage
    | HealthView
    | LeaseResult
    | LiveView
    | RulesView
    | Sizes
    | Snapshot
    | StateCopy
    | TopologyView
    | tuple[HostView, ...]
    | tuple[LinkView, ...]
    | tuple[SwitchDetailView, ...]
    | RequestError
    | None
)


@dataclass(frozen=True)
class Answer:
    """The answer to the event with this token; an error is raised by the service layer, never by the core."""

    token: int
    result: Result


@dataclass(frozen=True)
class Abandoned:
    """Nothing that was asked before this is answered any more; what became of it, the store says."""

    reason: str


@dataclass(frozen=True)
class AllocationChanged:
    """A running flow has new rates or paths; streams only come and go where its host may be told so."""

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
    """A line for the log. `level` is a name of the logging module, `data` goes beside the text.

    With a `kind`, clients are told of it too.
    """

    level: str
    text: str
    data: Mapping[str, object] = field(default_factory=dict)
    kind: ClientEventKind | None = None


@dataclass(frozen=True)
class Postpone:
    """Hand these events over again, before any other requests: something else may be urgent meanwhile."""

    events: tuple[FlowRequested, ...]


ClientMessage = Abandoned | Answer | Notify | Report
DatapathMessage = (
    InstallRules
    | RemoveRules
    | RemoveRule
    | RemoveGroup
    | PacketOut
    | ReadCounters
    | ReadInstalled
    | ReadRuleCounters
    | Acknowledge
    | IntroduceSwitch
    | CloseConnection
)
Message = DatapathMessage | ClientMessage | Change | Postpone
