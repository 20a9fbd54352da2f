"""What links and flows carry, by the switches' counters, and what of it belongs to no flow.

A switch is read in intervals. What it sent out of a port, less what its pinned rules sent there, is traffic
that nobody asked for; so is what came in from a host, less what the host's flows sent. Both are counted by
the same switch at the same moment. Yet rules may be counted later than ports (Open vSwitch: up to half a
second), so that difference is averaged over some intervals, and only what lasts is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from controller.model.counters import PinnedBy, PinnedCount, PortCounters
from controller.model.journal import Journaled, JournaledDict, JournaledSet
from controller.state.live_network import LiveNetwork, arc_name

_INTERVALS = 3
"""Rates of streams, and of traffic that nobody asked for, are averages over this number of intervals."""

_AVERAGES_COMPARED = 5
"""Averages, one after the other, of which the least is believed."""

_NEGLIGIBLE_SHARE = 0.01
"""Less than this share of a link's capacity is the controller's probes, ARP and the error of the counters."""


class _Interval(NamedTuple):
    """Bytes between two readings; by port, or by what a rule looks at."""

    elapsed_s: float
    sent: Mapping[int, int]
    received: Mapping[int, int]
    pinned: Mapping[PinnedBy, int]
    pinned_out: Mapping[int, int]  # by the port that rules sent to
    pinned_in: Mapping[int, int]  # by the port behind which the flow's sender is
    is_complete: bool  # whether all pinned rules say to which port they sent


@dataclass(frozen=True)
class _Reading:
    """The last reading of a switch, and the intervals before it, the oldest first."""

    read_at: float
    ports: Mapping[int, PortCounters]
    pinned: Mapping[PinnedBy, PinnedCount]
    intervals: tuple[_Interval, ...]


class MeasuredLoad(Journaled):
    """The loads of all links and streams; None where they are not measured."""

    def __init__(self, live: LiveNetwork) -> None:
        self._live = live
        self._readings: JournaledDict[int, _Reading] = JournaledDict()
        self._averages: JournaledDict[str, tuple[float, ...]] = JournaledDict()  # by arc, the last ones
        self._yielded: JournaledDict[str, float] = JournaledDict()  # by arc; what is 0 is not there
        self._told: JournaledSet[str] = JournaledSet()  # arcs whose traffic clients have been told of

    def take(
        self,
        datapath_id: int,
        read_at: float,
        ports: Mapping[int, PortCounters],
        pinned: Mapping[PinnedBy, PinnedCount],
        entry_port: Callable[[PinnedBy], int | None],
    ) -> None:
        """Record what a switch has counted until now.

        Times never go back. `entry_port` returns the port of this switch behind which the sender of a rule's
        packets is.
        """
        before = self._readings.get(datapath_id)
        intervals: tuple[_Interval, ...] = ()
        if before is not None:
            latest = _between(before, read_at, ports, pinned, entry_port)
            if latest is None:
                return
            intervals = (*before.intervals, latest)[-_INTERVALS:]
        self._readings[datapath_id] = _Reading(read_at, ports, pinned, intervals)
        if len(intervals) == _INTERVALS:
            self._compare(datapath_id, intervals)

    def forget(self, datapath_id: int) -> bool:
        """Forget what a switch has counted; returns whether something had been left of its links."""
        self._readings.pop(datapath_id, None)
        names = self._arcs_counted_by(datapath_id).values()
        for name in names:
            self._averages.pop(name, None)
            self._told.discard(name)
        yielded = [self._yielded.pop(name, None) for name in names]
        return any(yielded)

    def counters(self, datapath_id: int, port: int) -> PortCounters | None:
        """Return what a switch had counted at a port when it was last read."""
        reading = self._readings.get(datapath_id)
        return None if reading is None else reading.ports.get(port)

    def arc_bps(self, name: str) -> float | None:
        """Return the wire rate of an arc over the last interval."""
        arc = self._live.arcs[name]
        is_sent = not self._live.is_host(arc.tail)
        node, port = (arc.tail, arc.tail_port) if is_sent else (arc.head, arc.head_port)
        if self._live.is_host(node):
            return None
        reading = self._readings.get(self._live.datapath_id(node))
        if reading is None or not reading.intervals:
            return None
        last = reading.intervals[-1]
        count = (last.sent if is_sent else last.received).get(port)
        return None if count is None else 8 * count / last.elapsed_s

    def pinned_bps(self, switch: str, by: PinnedBy) -> float | None:
        """Return the wire rate of what a pinned rule of a switch has sent, averaged over some intervals."""
        reading = self._readings.get(self._live.datapath_id(switch))
        counted = [each for each in reading.intervals if by in each.pinned] if reading is not None else []
        if not counted:
            return None
        return 8 * sum(each.pinned[by] for each in counted) / sum(each.elapsed_s for each in counted)

    def unrequested_bps(self, name: str) -> float | None:
        """Return the wire rate of lasting traffic on an arc that belongs to no flow."""
        averages = self._averages.get(name)
        if averages is None:
            return None
        least = min(averages) if len(averages) == _AVERAGES_COMPARED else 0.0
        return least if least >= _NEGLIGIBLE_SHARE * self._live.arcs[name].rate_bps else 0.0

    def yielded_bps(self, name: str) -> float:
        """Return what of an arc is left to traffic that nobody asked for."""
        return self._yielded.get(name, 0.0)

    def all_yielded(self) -> dict[str, float]:
        """Return what is left to traffic that nobody asked for, by arc, where that is more than 0."""
        return dict(self._yielded)

    def set_yielded(self, yielded: Mapping[str, float]) -> None:
        """Leave so much to traffic that nobody asked for, by arc, where nothing is yet."""
        for name, yielded_bps in yielded.items():
            self._yielded[name] = yielded_bps

    def follow(self, datapath_id: int, most_share: float) -> dict[str, tuple[float, float]]:
        """Leave to traffic that nobody asked for what it takes of the arcs that a switch counts.

        Changes below a share of the capacity are left for later, so that solves have the same links. Of an
        arc's capacity at most `most_share` is left.

        Returns:
            What was and what is left, in bit/s, by the arcs where that has changed.
        """
        changed = {}
        for name in self._arcs_counted_by(datapath_id).values():
            capacity_bps = self._live.arcs[name].rate_bps
            was_bps = self._yielded.get(name, 0.0)
            is_bps = min(self.unrequested_bps(name) or 0.0, most_share * capacity_bps)
            if abs(is_bps - was_bps) > _NEGLIGIBLE_SHARE * capacity_bps or (was_bps and not is_bps):
                self._yielded[name] = is_bps
                if not is_bps:
                    del self._yielded[name]
                changed[name] = (was_bps, is_bps)
        return changed

    def take_unrequested_changes(self, datapath_id: int) -> dict[str, float]:
        """Return the arcs of a switch where traffic that nobody asked for began (its rate) or ended (0)."""
        changes = {}
        for name in self._arcs_counted_by(datapath_id).values():
            unrequested_bps = self.unrequested_bps(name) or 0.0
            begins = unrequested_bps >= 2 * _NEGLIGIBLE_SHARE * self._live.arcs[name].rate_bps
            if begins and name not in self._told:
                self._told.add(name)
                changes[name] = unrequested_bps
            elif not unrequested_bps and name in self._told:
                self._told.discard(name)
                changes[name] = 0.0
        return changes

    def _compare(self, datapath_id: int, intervals: tuple[_Interval, ...]) -> None:
        """Record the average of what belonged to no flow, by arc."""
        elapsed_s = sum(each.elapsed_s for each in intervals)
        is_complete = all(each.is_complete for each in intervals)
        for (port, is_sent), name in self._arcs_counted_by(datapath_id).items():
            if is_sent and not is_complete:
                self._averages.pop(name, None)
                continue
            total = 0
            for each in intervals:
                counts, flows = (each.sent, each.pinned_out) if is_sent else (each.received, each.pinned_in)
                total += counts.get(port, 0) - flows.get(port, 0)
            average_bps = max(0.0, 8 * total / elapsed_s)
            self._averages[name] = (*self._averages.get(name, ()), average_bps)[-_AVERAGES_COMPARED:]

    def _arcs_counted_by(self, datapath_id: int) -> dict[tuple[int, bool], str]:
        """Return the arcs that a switch counts, by port and whether it sends them; hosts count nothing."""
        switch = self._live.switch_name(datapath_id)
        arcs: dict[tuple[int, bool], str] = {}
        for arc in self._live.arcs_from(switch) if switch is not None else ():
            arcs[arc.tail_port, True] = arc_name(arc.tail, arc.head)
            if self._live.is_host(arc.head):
                arcs[arc.tail_port, False] = arc_name(arc.head, arc.tail)
        return arcs


def _between(
    before: _Reading,
    read_at: float,
    ports: Mapping[int, PortCounters],
    pinned: Mapping[PinnedBy, PinnedCount],
    entry_port: Callable[[PinnedBy], int | None],
) -> _Interval | None:
    """Return what was counted since a reading; None where no time has passed."""
    elapsed_s = _elapsed_s(before, read_at, ports)
    if elapsed_s <= 0:
        return None
    sent, received = {}, {}
    for number, now in ports.items():
        then = before.ports.get(number)
        if then is not None:
            sent[number] = _since(now.sent_bytes, then.sent_bytes)
            received[number] = _since(now.received_bytes, then.received_bytes)
    counts: dict[PinnedBy, int] = {}
    pinned_out: dict[int, int] = {}
    pinned_in: dict[int, int] = {}
    is_complete = True
    for by, (out_port, total) in pinned.items():
        former = before.pinned.get(by)
        count = counts[by] = total if former is None else _since(total, former.total_bytes)
        if out_port is None:
            is_complete = False
        else:
            pinned_out[out_port] = pinned_out.get(out_port, 0) + count
        entry = entry_port(by)
        if entry is not None:
            pinned_in[entry] = pinned_in.get(entry, 0) + count
    return _Interval(elapsed_s, sent, received, counts, pinned_out, pinned_in, is_complete)


def _elapsed_s(before: _Reading, read_at: float, ports: Mapping[int, PortCounters]) -> float:
    """Return the time between two readings, by the switch's own clock where it has one."""
    for number, now in ports.items():
        then = before.ports.get(number)
        if then is not None and now.age_s > then.age_s:
            return now.age_s - then.age_s
    return read_at - before.read_at


def _since(now: int, then: int) -> int:
    """Return what a counter counted, which may have begun from 0 in between."""
    return now - then if now >= then else now
