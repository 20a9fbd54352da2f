"""All flows that the controller carries, and what they take of the links."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from controller.compile.split import TAGS, tag_of
from controller.model.journal import Journaled, JournaledDict, undo_by
from controller.model.rules import TcpConnection
from controller.state.flow import ROUNDING, Flow, Slot, Stream
from controller.state.live_network import arcs_of

Load = tuple[tuple[str, ...], float]
"""Arcs, and the wire rate (bit/s) that is taken of each."""

_ENDED_REMEMBERED = 10_000
"""Flows whose ids are remembered after their end: to release them again is no error."""


class FlowTable(Journaled):
    """All flows by id, by switch, with the TCP addresses they hold and what they take of arcs.

    `last_number` is that of the flow that was granted last.
    """

    def __init__(self, ack_ratio: float = 0.0) -> None:
        self.last_number = 0
        self._ended: JournaledDict[str, None] = JournaledDict()  # ids, oldest first
        self._ack_ratio = ack_ratio
        self._loads: JournaledDict[str, float] = JournaledDict()
        self._loads_of: JournaledDict[str, list[Load]] = JournaledDict()
        self._by_switch: dict[str, dict[str, None]] = {}
        self._flows: JournaledDict[str, Flow] = JournaledDict()
        self._holders: JournaledDict[TcpConnection, str] = JournaledDict()
        self._ports: JournaledDict[tuple[str, int], int] = JournaledDict()  # how many hold a source's port
        self._short: JournaledDict[str, None] = JournaledDict()
        self._manual: JournaledDict[str, None] = JournaledDict()
        self._growing: JournaledDict[str, None] = JournaledDict()
        self._idle: JournaledDict[str, None] = JournaledDict()
        self._changing: JournaledDict[str, None] = JournaledDict()
        self._by_tag: JournaledDict[int, str] = JournaledDict()  # split flows
        self._by_key: JournaledDict[tuple[str, str], str] = JournaledDict()  # owner and key of their requests

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows.values())

    def __len__(self) -> int:
        return len(self._flows)

    def get(self, flow_id: str) -> Flow | None:
        """Return a flow; None if there is no such flow."""
        return self._flows.get(flow_id)

    def has_ended(self, flow_id: str) -> bool:
        """Return whether a flow ended lately."""
        return flow_id in self._ended

    def remember_ended(self, flow_id: str) -> None:
        """Record that a flow has ended."""
        self._ended[flow_id] = None
        if len(self._ended) > _ENDED_REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def succeed(self, former: FlowTable) -> None:
        """Know which flows ended and which numbers they had, but none that is there."""
        self.last_number = former.last_number
        self._ended.set_all(former._ended)

    def holder(self, connection: TcpConnection) -> str | None:
        """Return the id of the flow that holds these addresses in either direction."""
        return self._holders.get(connection) or self._holders.get(connection.reverse)

    def uses_port(self, source_ip: str, port: int) -> bool:
        """Return whether a flow from a host uses a source port."""
        return (source_ip, port) in self._ports

    def short(self) -> list[Flow]:
        """Return the flows that have less than they asked for."""
        return [self._flows[flow_id] for flow_id in self._short]

    def manual(self) -> list[Flow]:
        """Return the flows whose paths were given by hand."""
        return [self._flows[flow_id] for flow_id in self._manual]

    def growing(self) -> list[Flow]:
        """Return the flows whose hosts open and close streams as they are told."""
        return [self._flows[flow_id] for flow_id in self._growing]

    def with_changing_streams(self) -> list[Flow]:
        """Return those of them whose hosts are to open or close a stream."""
        return [self._flows[flow_id] for flow_id in self._changing]

    def with_idle_streams(self) -> list[Flow]:
        """Return those of them that have streams which carry nothing while others do."""
        return [self._flows[flow_id] for flow_id in self._idle]

    def free_tag(self, preferred: int) -> int | None:
        """Return a tag that no split flow has, the preferred one or the next; None if there is none."""
        tags = ((preferred + offset) % TAGS for offset in range(TAGS))
        return next((tag for tag in tags if tag not in self._by_tag), None)

    def with_stamp(self, stamp: str) -> Flow | None:
        """Return the split flow whose packets carry a stamp."""
        flow_id = self._by_tag.get(tag_of(stamp))
        return None if flow_id is None else self._flows[flow_id]

    def with_key(self, belongs_to: str, key: str) -> Flow | None:
        """Return the flow that a client has requested with a key."""
        flow_id = self._by_key.get((belongs_to, key))
        return None if flow_id is None else self._flows[flow_id]

    def add(self, flow: Flow) -> None:
        """Add a flow that was granted."""
        self._flows[flow.id] = flow
        for connection in flow.held_connections():
            self._hold(connection, flow)
        if flow.max_streams:
            self._growing[flow.id] = None
        if flow.given_bps is not None:
            self._manual[flow.id] = None
        if flow.split is not None:
            self._by_tag[flow.split.tag] = flow.id
        if flow.repeated_as is not None:
            self._by_key[flow.belongs_to, flow.repeated_as[0]] = flow.id
        self.reindex(flow)
        self.account(flow)

    def remove(self, flow: Flow) -> None:
        """Forget a flow that has ended."""
        del self._flows[flow.id]
        for connection in flow.held_connections():
            self._let_go(connection)
        self._list_under(flow.id, (), flow.switches())
        for listed in (self._manual, self._growing, self._idle, self._changing):
            listed.pop(flow.id, None)
        if flow.split is not None:
            self._by_tag.pop(flow.split.tag, None)
        if flow.repeated_as is not None:
            self._by_key.pop((flow.belongs_to, flow.repeated_as[0]), None)
        self._short.pop(flow.id, None)
        self._change_loads({flow.id: []})
        self._loads_of.pop(flow.id, None)

    def _hold(self, connection: TcpConnection, flow: Flow) -> None:
        self._holders[connection] = flow.id
        port = connection.source_ip, connection.source_port
        self._ports[port] = self._ports.get(port, 0) + 1

    def _let_go(self, connection: TcpConnection) -> None:
        del self._holders[connection]
        port = connection.source_ip, connection.source_port
        self._ports[port] -= 1
        if not self._ports[port]:
            del self._ports[port]

    def move(self, flow: Flow, moved: Flow) -> None:
        """Give a flow the paths that it has been moved to."""
        former = flow.switches()
        flow.split, flow.generation, flow.reserved = moved.split, moved.generation, ()
        if flow.max_streams:
            self.change_streams(flow, moved.streams, flow.spare_ports)
        else:
            flow.streams = moved.streams
            self.reindex(flow, former)
            self.account(flow)

    def change_streams(
        self,
        flow: Flow,
        streams: list[Stream],
        spare_ports: tuple[int, ...],
        leaving: tuple[Stream, ...] | None = None,
    ) -> None:
        """Give a flow other streams and ports for more; a spare port that another flow has is left out."""
        before, former = set(flow.held_connections()), flow.switches()
        flow.streams, flow.leaving = streams, flow.leaving if leaving is None else leaving
        used = {stream.source_port for stream in (*flow.streams, *flow.leaving)}
        flow.spare_ports = tuple(
            port
            for port in dict.fromkeys(spare_ports)
            if port not in used and self.holder(flow.connection_from(port)) in (None, flow.id)
        )
        self.reindex(flow, former)
        after = set(flow.held_connections())
        for connection in before - after:
            self._let_go(connection)
        for connection in after - before:
            self._hold(connection, flow)
        self.account(flow)

    def set_ack_ratio(self, ack_ratio: float) -> None:
        """Account for acknowledgements by another ratio from now on."""
        if ack_ratio != self._ack_ratio:
            self._ack_ratio = ack_ratio
            for flow in self:
                self.account(flow)

    def load_bps(self, arc: str) -> float:
        """Return the wire rate that all flows take of an arc, as `arc_loads`, to about 1e-9 of it."""
        return self._loads.get(arc, 0.0)

    def account(self, flow: Flow) -> None:
        """Record that a flow has other rates, paths or reservations."""
        self.account_all((flow,))

    def account_all(self, flows: Iterable[Flow]) -> None:
        """Record that flows have other rates, paths or reservations."""
        loads: dict[str, list[Load]] = {}
        for flow in flows:
            is_short = flow.rate_bps < (1 - ROUNDING) * flow.requested_bps
            if is_short != (flow.id in self._short):
                self._list(self._short, flow, is_short)
            if flow.max_streams:
                changing = any(not stream.is_open for stream in (*flow.streams, *flow.leaving))
                self._list(self._idle, flow, bool(flow.idle_streams()))
                self._list(self._changing, flow, changing)
            loads[flow.id] = _loads(flow, self._ack_ratio)
        self._change_loads(loads)

    @staticmethod
    def _list(listed: JournaledDict[str, None], flow: Flow, is_one: bool) -> None:
        if is_one:
            listed[flow.id] = None
        else:
            listed.pop(flow.id, None)

    def _change_loads(self, loads: dict[str, list[Load]]) -> None:
        """Give flows these loads instead of theirs; many with one path cost little more than one flow."""
        changes: dict[tuple[str, ...], float] = {}
        for flow_id, after in loads.items():
            before = self._loads_of.get(flow_id, ())
            if before != after:
                for arcs, bps in before:
                    changes[arcs] = changes.get(arcs, 0.0) - bps
                for arcs, bps in after:
                    changes[arcs] = changes.get(arcs, 0.0) + bps
                self._loads_of[flow_id] = after
        added = by_arc((arcs, bps) for arcs, bps in changes.items() if bps)
        self._loads.set_all({arc: self._loads.get(arc, 0.0) + bps for arc, bps in added.items()})

    def reindex(self, flow: Flow, former: Collection[str] = ()) -> None:
        """List a flow under the switches of its paths, which were others before."""
        switches = flow.switches()
        new = [switch for switch in switches if switch not in former]
        self._list_under(flow.id, new, [switch for switch in former if switch not in switches])

    def _list_under(self, flow_id: str, switches: Collection[str], former: Collection[str]) -> None:
        for switch in former:
            del self._by_switch[switch][flow_id]
        for switch in switches:
            self._by_switch.setdefault(switch, {})[flow_id] = None
        undo_by(self._list_under, flow_id, former, switches)

    def is_used(self, switch: str) -> bool:
        """Return whether a flow's paths lead through a switch."""
        return bool(self._by_switch.get(switch))

    def through(self, switch: str) -> list[Flow]:
        """Return the flows whose paths lead through a switch."""
        return [self._flows[flow_id] for flow_id in self._by_switch.get(switch, ())]


def arc_loads(flows: Iterable[Flow], ack_ratio: float) -> dict[str, float]:
    """Return the wire rate (bit/s) that flows take of each arc, with that of the acknowledgements.

    A flow that is being moved takes, of each arc, the larger of what it has and what it will have.
    """
    return by_arc(load for flow in flows for load in _loads(flow, ack_ratio))


def by_arc(loads: Iterable[Load]) -> dict[str, float]:
    """Return the sum of loads on each arc."""
    sums: dict[str, float] = {}
    for arcs, wire_bps in loads:
        for arc in arcs:
            sums[arc] = sums.get(arc, 0.0) + wire_bps
    return sums


def _loads(flow: Flow, ack_ratio: float) -> list[Load]:
    now = slot_loads(flow, flow.streams, ack_ratio)
    if not flow.reserved:
        return now
    then = slot_loads(flow, flow.reserved, ack_ratio)
    if not now:
        return then
    sums = by_arc(now), by_arc(then)
    return [((arc,), max(each.get(arc, 0.0) for each in sums)) for arc in dict.fromkeys((*sums[0], *sums[1]))]


def slot_loads(flow: Flow, slots: Iterable[Slot | Stream], ack_ratio: float) -> list[Load]:
    """Return what a flow takes of arcs with these paths and rates."""
    ack_path = None if flow.split is None else flow.split.ack_path
    wire, ratio = flow.framing.wire_per_goodput(flow.framed_streams), ack_ratio * flow.framing.ack_scale
    return [
        load
        for slot in slots
        if slot.rate_bps
        for load in path_loads(slot.path, slot.rate_bps * wire, ratio, ack_path)
    ]


def path_loads(
    path: tuple[str, ...], wire_bps: float, ack_ratio: float, ack_path: tuple[str, ...] | None
) -> tuple[Load, Load]:
    """Return the loads of a wire rate on a path, and of its ACKs on `ack_path` or on the reverse (None)."""
    return (arcs_of(path), wire_bps), (arcs_of(ack_path or path[::-1]), wire_bps * ack_ratio)
