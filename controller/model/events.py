"""What happens to the controller, as the core sees it: frozen, in the past tense.

`token` is how an event's answer finds its way back; the shell chooses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.model.callers import UNRESTRICTED, Caller
from controller.model.counters import PinnedBy, PinnedCount, PortCounters
from controller.model.installed import Installed
from controller.model.records import RecordChange
from controller.model.requests import FlowQuery, FlowRequest, LinkChange, ViewName
from controller.model.settings import Settings
from topologies.model import Network


class Event:
    """Something that happened."""


@dataclass(frozen=True)
class SwitchEvent(Event):
    """Something that a switch did."""

    datapath_id: int


@dataclass(frozen=True)
class ClientRequest(Event):
    """Something that a client wants; the answer finds its way back by the token."""

    token: int


@dataclass(frozen=True)
class SwitchConnected(SwitchEvent):
    """A switch finished its handshake; `live_ports` are the ports that are up.

    `installed` is what it has; None: that is not known, and it is given everything in place of what it has.
    `port_names` are pairs of a port and what the switch calls it; `announcement` is acknowledged.
    """

    live_ports: frozenset[int]
    installed: Installed | None = None
    port_names: tuple[tuple[int, str], ...] = ()
    announcement: int = 0


@dataclass(frozen=True)
class SwitchDisconnected(SwitchEvent):
    """A switch's connection ended."""


@dataclass(frozen=True)
class SwitchHeld(SwitchEvent):
    """Another controller has become master of a switch (`is_held`), or has ceased to be."""

    is_held: bool


@dataclass(frozen=True)
class InstalledRead(SwitchEvent):
    """A connected switch said what it has."""

    installed: Installed


@dataclass(frozen=True)
class MessagesRefused(SwitchEvent):
    """A switch answered `number` messages, which installed nothing, with the same error."""

    reason: str
    number: int


@dataclass(frozen=True)
class PortCameUp(SwitchEvent):
    """A port was added or its link came up."""

    port: int


@dataclass(frozen=True)
class PortWentDown(SwitchEvent):
    """A port was removed or its link went down."""

    port: int


@dataclass(frozen=True)
class LinkDiscovered(Event):
    """A discovery packet went from one port to another (LLDP)."""

    tail_datapath_id: int
    tail_port: int
    head_datapath_id: int
    head_port: int


@dataclass(frozen=True)
class PacketArrived(SwitchEvent):
    """A switch handed a packet to the controller; `frame` begins with the Ethernet header."""

    port: int
    frame: bytes


@dataclass(frozen=True)
class RuleExpired(SwitchEvent):
    """A switch has removed a rule for packets to an address: none has matched it for as long as it says."""

    ip: str


@dataclass(frozen=True)
class BarrierReceived(SwitchEvent):
    """A switch has carried out everything up to a barrier."""

    barrier: int


@dataclass(frozen=True)
class RulesRefused(SwitchEvent):
    """A switch answered the rules of a barrier with an error; `cookie` is that of the rule, if known.

    `is_full`: it has no room for more.
    """

    barrier: int
    reason: str
    cookie: int | None = None
    is_full: bool = False


@dataclass(frozen=True)
class CountersRead(SwitchEvent):
    """A switch said at `read_at` what it has counted; it took `messages`, there and back.

    `ports` are by number, `pinned` by what the rules look at; `rules` is how many it has,
    `dropped` how many packets to multicast and broadcast addresses it has dropped (None: unknown).
    """

    read_at: float
    ports: Mapping[int, PortCounters]
    pinned: Mapping[PinnedBy, PinnedCount]
    messages: int
    rules: int | None = None
    dropped: int | None = None


@dataclass(frozen=True)
class CountersRefused(SwitchEvent):
    """A switch does not say what it has counted."""

    reason: str


@dataclass(frozen=True)
class FlowRequested(ClientRequest):
    """A client asked for a flow; `owner` is the session that hears of its changes (empty: none).

    After `deadline` (on the clock of the events) nobody waits for the answer any more. `repeated_as` has a
    key and a digest: the same request again gets the same flow.
    """

    request: FlowRequest
    owner: str = ""
    caller: Caller = UNRESTRICTED
    deadline: float | None = None
    repeated_as: tuple[str, str] | None = None


@dataclass(frozen=True)
class RequestAbandoned(ClientRequest):
    """The client that requested a flow with this token has gone or given up: the flow is undone."""


@dataclass(frozen=True)
class FlowChanged(ClientRequest):
    """A client asked for another rate (goodput, bit/s) of a running flow.

    With `if_revisions`, only if the flow has one of them.
    """

    flow_id: str
    rate_bps: float
    caller: Caller = UNRESTRICTED
    if_revisions: frozenset[int] | None = None


@dataclass(frozen=True)
class FlowReleased(ClientRequest):
    """A client gave a flow back; with `if_revisions`, only if the flow has one of them."""

    flow_id: str
    caller: Caller = UNRESTRICTED
    if_revisions: frozenset[int] | None = None


@dataclass(frozen=True)
class LeaseRenewed(ClientRequest):
    """A client still uses its flows; a session that renews a flow becomes its owner."""

    flow_ids: tuple[str, ...]
    owner: str = ""
    caller: Caller = UNRESTRICTED


@dataclass(frozen=True)
class StreamsReported(ClientRequest):
    """A host said what is of the streams of a flow: those that are open, and those that it cannot open.

    `spare_ports` are bound for more of them.
    """

    flow_id: str
    open_ports: frozenset[int]
    failed_ports: frozenset[int]
    spare_ports: tuple[int, ...]
    caller: Caller = UNRESTRICTED


@dataclass(frozen=True)
class LinkChanged(ClientRequest):
    """A client changed a link; with `if_revisions`, only if the link has one of them."""

    link: str
    change: LinkChange
    caller: Caller = UNRESTRICTED
    if_revisions: frozenset[int] | None = None


@dataclass(frozen=True)
class ConfigurationChanged(ClientRequest):
    """The configuration was reloaded and applies.

    `network` is that of the topology file, which was read again too; None: it was not.
    """

    settings: Settings
    links: Mapping[str, LinkChange]
    network: Network | None = None


@dataclass(frozen=True)
class ConfigurationRefused(Event):
    """The configuration was reloaded and is invalid: the old one stays in force."""

    reason: str


@dataclass(frozen=True)
class ViewRequested(ClientRequest):
    """A client asked for a view; `key` names its flow or switch."""

    view: ViewName
    key: str = ""


@dataclass(frozen=True)
class FlowsRequested(ClientRequest):
    """A client asked for a page of the flows."""

    query: FlowQuery


@dataclass(frozen=True)
class CopyRequested(ClientRequest):
    """A client asked for a preview, which is computed on a copy of the state."""


@dataclass(frozen=True)
class ControllerStopping(Event):
    """The process is about to end; the switches keep the rules of what runs, or lose them all."""

    remove_rules: bool


@dataclass(frozen=True)
class RecordsRead(Event):
    """All records of the store, for a replica that begins to follow it, ordered by dependency."""

    changes: tuple[RecordChange, ...]


@dataclass(frozen=True)
class RecordsChanged(Event):
    """Records that another replica has written, in order."""

    changes: tuple[RecordChange, ...]


@dataclass(frozen=True)
class LeadershipGained(Event):
    """This replica has become the leader; all earlier records have been applied."""

    epoch: int


@dataclass(frozen=True)
class LeadershipLost(Event):
    """This replica has lost the leadership, and its state may differ from the store."""

    reason: str


@dataclass(frozen=True)
class Together(Event):
    """Confirmations and answered probes, or requests for flows, that waited at the same time.

    Some work is shared.
    """

    events: tuple[BarrierReceived | LinkDiscovered, ...] | tuple[FlowRequested, ...]


@dataclass(frozen=True)
class TimePassed(Event):
    """The core's deadline passed, and what had happened before it has been handed over."""
