"""What the core wants done: messages to switches, answers to clients, and lines for the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.errors import RequestError
from controller.model.client_events import ClientEvent, ClientEventKind
from controller.model.events import FlowRequested
from controller.model.live_views import LiveView
from controller.model.records import RecordChange
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
    SwitchDetailView,
    TopologyView,
)


@dataclass(frozen=True)
class DatapathMessage:
    """Something to be done with a switch."""

    datapath_id: int


@dataclass(frozen=True)
class InstallRules(DatapathMessage):
    """Install entries in order and confirm with the barrier; `wipe` first removes all that the switch has."""

    entries: tuple[Entry, ...]
    barrier: int
    wipe: bool = False


@dataclass(frozen=True)
class RemoveRules(DatapathMessage):
    """Remove all rules that carry a cookie."""

    cookie: int


@dataclass(frozen=True)
class RemoveRule(DatapathMessage):
    """Remove one rule while others of its cookie stay."""

    rule: Rule


@dataclass(frozen=True)
class RemoveGroup(DatapathMessage):
    """Remove a group, and with it every rule that leads to it."""

    group: int


@dataclass(frozen=True)
class RemoveMeter(DatapathMessage):
    """Remove a meter, and with it every rule that uses it."""

    meter: int


@dataclass(frozen=True)
class CloseConnection(DatapathMessage):
    """End a switch's connection: it will come back, and what it has is compared with what it should have."""

    reason: str


@dataclass(frozen=True)
class Acknowledge(DatapathMessage):
    """What follows for a switch was decided on this announcement; what was decided before is dropped."""

    announcement: int


@dataclass(frozen=True)
class IntroduceSwitch(DatapathMessage):
    """Say again that a switch is connected, if it is, and what it has."""


@dataclass(frozen=True)
class PacketOut(DatapathMessage):
    """Send a frame out of a port."""

    port: int
    frame: bytes
    tag: int | None = None


@dataclass(frozen=True)
class ReadCounters(DatapathMessage):
    """Ask a switch what it has counted at its ports and, if wanted, for others.

    `pinned` are the rules that pin connections, `groups` the packets to multicast and broadcast addresses.
    """

    pinned: bool
    groups: bool


@dataclass(frozen=True)
class ReadInstalled(DatapathMessage):
    """Ask a switch which rules, groups and meters it has, and what these rules have counted."""


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
    | StateCopy
    | TopologyView
    | tuple[HostView, ...]
    | tuple[LinkView, ...]
    | tuple[SwitchDetailView, ...]
    | RequestError
    | None
)


@dataclass(frozen=True)
class Reply:
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


ClientMessage = Abandoned | Reply | Notify | ClientEvent
Message = DatapathMessage | Abandoned | Reply | Notify | Report | RecordChange | Postpone
