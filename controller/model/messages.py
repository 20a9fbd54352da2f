"""Messages that the core emits: to switches, to clients, to the log and to the store."""

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
    """A message to a switch."""

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
    """Close a switch's connection; when it reconnects, its rules are compared with the wanted ones."""

    reason: str


@dataclass(frozen=True)
class Acknowledge(DatapathMessage):
    """Mark the messages that follow as decided after this announcement; earlier ones are dropped."""

    announcement: int


@dataclass(frozen=True)
class IntroduceSwitch(DatapathMessage):
    """Announce a connected switch again, with what it has installed."""


@dataclass(frozen=True)
class PacketOut(DatapathMessage):
    """Send a frame out of a port."""

    port: int
    frame: bytes
    tag: int | None = None


@dataclass(frozen=True)
class ReadCounters(DatapathMessage):
    """Read a switch's port counters and, if wanted, others.

    `pinned` are the rules that pin connections, `groups` the packets to multicast and broadcast addresses.
    """

    pinned: bool
    groups: bool


@dataclass(frozen=True)
class ReadInstalled(DatapathMessage):
    """Read a switch's rules, groups and meters, and the counters of these rules."""


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
    """The answer to the event with this token; the service layer raises an error, the core never does."""

    token: int
    result: Result


@dataclass(frozen=True)
class Abandoned:
    """Requests made before this get no answer; the store has their outcome."""

    reason: str


@dataclass(frozen=True)
class AllocationChanged:
    """A running flow has new rates or paths; streams are added and removed only if its host allows it."""

    flow: FlowView


@dataclass(frozen=True)
class FlowEnded:
    """A flow ended that its client had not released."""

    flow_id: str
    reason: str


@dataclass(frozen=True)
class Notify:
    """A notification to the session that owns a flow."""

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
    """Requeue these events before other requests, so that urgent events come first."""

    events: tuple[FlowRequested, ...]


ClientMessage = Abandoned | Reply | Notify | ClientEvent
Message = DatapathMessage | Abandoned | Reply | Notify | Report | RecordChange | Postpone
