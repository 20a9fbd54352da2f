"""What happens to the controller, as the core sees it: frozen, in the past tense.

`token` is how an event's answer finds its way back; the shell chooses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.model.callers import ANYBODY, Caller
from controller.model.counters import PinnedBy, PinnedCount, PortCounters, RuleCount, RuleKey
from controller.model.reconcile import Installed
from controller.model.records import Change, Records
from controller.model.requests import FlowQuery, FlowRequest, LinkChange, ViewName
from controller.model.settings import Settings
from topologies.model import Network

__all__ = [
    "BarrierReceived",
    "ConfigurationChanged",
    "ConfigurationRefused",
    "ControllerStopping",
    "CopyRequested",
    "CountersRead",
    "CountersRefused",
    "Event",
    "FlowChanged",
    "FlowReleased",
    "FlowRequested",
    "FlowsRequested",
    "InstalledRead",
    "LeadershipGained",
    "LeadershipLost",
    "LeaseRenewed",
    "LinkChanged",
    "LinkDiscovered",
    "MessagesRefused",
    "PacketArrived",
    "PortCameUp",
    "PortWentDown",
    "RecordsChanged",
    "RecordsRead",
    "RequestAbandoned",
    "RuleCountersRead",
    "RulesRefused",
    "SnapshotRequested",
    "StreamsReported",
    "SwitchConnected",
    "SwitchDisconnected",
    "SwitchHeld",
    "TimePassed",
    "Together",
    "ViewRequested",
]


@dataclass(frozen=True)
class SwitchConnected:
    """A switch finished its handshake; `live_ports` are the ports that are up.

    `installed` is what it has; None: that is not known, and it is given everything in place of what it has.
    `port_names` are pairs of a port and what the switch calls it; `announcement` is acknowledged.
    """

    datapath_id: int
    live_ports: frozenset[int]
    installed: Installed | None = None
    port_names: tuple[tuple[int, str], ...] = ()
    announcement: int = 0


@dataclass(frozen=True)
class SwitchDisconnected:
    """A switch's connection ended."""

    datapath_id: int


@dataclass(frozen=True)
class SwitchHeld:
    """Another controller is master of a switch, which this one does not touch (`is_held`), or is no more."""

    datapath_id: int
    is_held: bool


@dataclass(frozen=True)
class InstalledRead:
    """A connected switch said what it has."""

    datapath_id: int
    installed: Installed


@dataclass(frozen=True)
class MessagesRefused:
    """A switch answered `number` messages, which installed nothing, with the same error."""

    datapath_id: int
    reason: str
    number: int


@dataclass(frozen=True)
class PortCameUp:
    """A port was added or its link came up."""

    datapath_id: int
    port: int


@dataclass(frozen=True)
class PortWentDown:
    """A port was removed or its link went down."""

    datapath_id: int
    port: int


@dataclass(frozen=True)
class LinkDiscovered:
    """A discovery packet went from one port to another (LLDP)."""

    tail_datapath_id: int
    tail_port: int
    head_datapath_id: int
    head_port: int


@dataclass(frozen=True)
class PacketArrived:
    """A switch handed a packet to the controller; `frame` begins with the Ethernet header."""

    datapath_id: int
    port: int
    frame: bytes


@dataclass(frozen=True)
class RuleExpired:
    """A switch has removed a rule that no packet has matched for as long as it says."""

    datapath_id: int
    cookie: int


@dataclass(frozen=True)
class BarrierReceived:
    """A switch has carried out everything up to a barrier."""

    datapath_id: int
    barrier: int


@dataclass(frozen=True)
class RulesRefused:
    """A switch answered the rules of a barrier with an error; `cookie` is that of the rule, if known.

    `is_full`: it has no room for more.
    """

    datapath_id: int
    barrier: int
    reason: str
    cookie: int | None = None
    is_full: bool = False


@dataclass(frozen=True)
class CountersRead:
    """A switch said at `read_at` what it has counted; it took `messages`, there and back.

    `ports` are by number, `pinned` by what the rules look at; `rules` is how many it has (None: unknown).
    """

    datapath_id: int
    read_at: float
    ports: Mapping[int, PortCounters]
    pinned: Mapping[PinnedBy, PinnedCount]
    messages: int
    rules: int | None = None


@dataclass(frozen=True)
class CountersRefused:
    """A switch does not say what it has counted."""

    datapath_id: int
    reason: str


@dataclass(frozen=True)
class RuleCountersRead:
    """A switch said what its rules have counted; None: it does not say."""

    datapath_id: int
    counts: Mapping[RuleKey, RuleCount] | None


@dataclass(frozen=True)
class FlowRequested:
    """A client asked for a flow; `owner` is the session that hears of its changes (empty: none).

    After `deadline` (on the clock of the events) nobody waits for the answer any more.
    """

    token: int
    request: FlowRequest
    owner: str = ""
    caller: Caller = ANYBODY
    deadline: float | None = None


@dataclass(frozen=True)
class RequestAbandoned:
    """The client that requested a flow with this token has gone or given up: the flow is undone."""

    token: int


@dataclass(frozen=True)
class FlowChanged:
    """A client asked for another rate (goodput, bit/s) of a running flow.

    With `if_revisions`, only if the flow has one of them.
    """

    token: int
    flow_id: str
    rate_bps: float
    caller: Caller = ANYBODY
    if_revisions: frozenset[int] | None = None


@dataclass(frozen=True)
class FlowReleased:
    """A client gave a flow back; with `if_revisions`, only if the flow has one of them."""

    token: int
    flow_id: str
    caller: Caller = ANYBODY
    if_revisions: frozenset[int] | None = None


@dataclass(frozen=True)
class LeaseRenewed:
    """A client still uses its flows; a session that renews a flow becomes its owner."""

    token: int
    flow_ids: tuple[str, ...]
    owner: str = ""
    caller: Caller = ANYBODY


@dataclass(frozen=True)
class StreamsReported:
    """A host said what is of the streams of a flow: those that are open, and those that it cannot open.

    `spare_ports` are bound for more of them.
    """

    token: int
    flow_id: str
    open_ports: frozenset[int]
    failed_ports: frozenset[int]
    spare_ports: tuple[int, ...]
    caller: Caller = ANYBODY


@dataclass(frozen=True)
class LinkChanged:
    """A client changed a link; with `if_revisions`, only if the link has one of them."""

    token: int
    link: str
    change: LinkChange
    caller: Caller = ANYBODY
    if_revisions: frozenset[int] | None = None


@dataclass(frozen=True)
class ConfigurationChanged:
    """The configuration was read again: all of it is as it says from now on.

    `network` is that of the topology file, which was read again too; None: it was not.
    """

    token: int
    settings: Settings
    links: Mapping[str, LinkChange]
    network: Network | None = None


@dataclass(frozen=True)
class ConfigurationRefused:
    """The configuration was read again, and something in it is wrong: all stays as it is."""

    reason: str


@dataclass(frozen=True)
class SnapshotRequested:
    """A client asked how things are."""

    token: int


@dataclass(frozen=True)
class ViewRequested:
    """A client asked how a part of all is; `key` names a flow or a switch where the view is of one."""

    token: int
    view: ViewName
    key: str = ""


@dataclass(frozen=True)
class FlowsRequested:
    """A client asked for a page of the flows."""

    token: int
    query: FlowQuery


@dataclass(frozen=True)
class CopyRequested:
    """A client wants to know what would happen if: it needs a copy of everything to try that on."""

    token: int


@dataclass(frozen=True)
class ControllerStopping:
    """The process is about to end; the switches keep the rules of what runs, or lose them all."""

    remove_rules: bool


@dataclass(frozen=True)
class RecordsRead:
    """All that the store has, for a replica that begins to follow it."""

    records: Records


@dataclass(frozen=True)
class RecordsChanged:
    """What another replica has written, in order."""

    changes: tuple[Change, ...]


@dataclass(frozen=True)
class LeadershipGained:
    """This replica decides from now on; all that was written before has been handed over."""

    epoch: int


@dataclass(frozen=True)
class LeadershipLost:
    """This replica decides no more, and what it knows may differ from the store."""

    reason: str


@dataclass(frozen=True)
class Together:
    """Confirmations and answered probes, or requests for flows, that waited at the same time.

    Some work is shared.
    """

    events: tuple[BarrierReceived | LinkDiscovered, ...] | tuple[FlowRequested, ...]


@dataclass(frozen=True)
class TimePassed:
    """The core's deadline passed, and what had happened before it has been handed over."""


Event = (
    SwitchConnected
    | SwitchDisconnected
    | SwitchHeld
    | InstalledRead
    | MessagesRefused
    | PortCameUp
    | PortWentDown
    | LinkDiscovered
    | PacketArrived
    | RuleExpired
    | BarrierReceived
    | RulesRefused
    | CountersRead
    | CountersRefused
    | FlowRequested
    | RequestAbandoned
    | FlowChanged
    | FlowReleased
    | LeaseRenewed
    | StreamsReported
    | LinkChanged
    | ConfigurationChanged
    | ConfigurationRefused
    | SnapshotRequested
    | RuleCountersRead
    | ViewRequested
    | FlowsRequested
    | CopyRequested
    | ControllerStopping
    | RecordsRead
    | RecordsChanged
    | LeadershipGained
    | LeadershipLost
    | Together
    | TimePassed
)
