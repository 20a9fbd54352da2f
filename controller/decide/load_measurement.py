"""Reads the switches' counters in turn, and follows traffic that nobody asked for."""

from __future__ import annotations

from collections.abc import Callable

from controller.compile.split import is_stamp
from controller.decide.component import Component, Context
from controller.decide.dropped_groups import DroppedGroups
from controller.model.client_events import ClientEventKind
from controller.model.counters import PinnedBy
from controller.model.events import CountersRead, CountersRefused
from controller.model.messages import ReadCounters
from controller.model.rules import TcpConnection
from controller.state.counter_polling import CounterPolling


class LoadMeasurement(Component):
    """Asks for counters and records them."""

    def __init__(
        self, shared: Context, capacity_returned: Callable[[float], None], asked: Callable[[str], None]
    ) -> None:
        super().__init__(shared)
        self._capacity_returned = capacity_returned
        self._asked = asked
        self._groups = DroppedGroups(shared)
        settings = self._state.settings
        self._polling = CounterPolling(settings.counters.interval_s, settings.counters.messages_per_s)

    def switch_joined(self, datapath_id: int, now: float) -> None:
        """Begin to read a switch."""
        self._polling.add(datapath_id, now)

    def switch_left(self, datapath_id: int, now: float) -> None:
        """Read a switch no more; what it has counted is unknown from now on."""
        self._polling.remove(datapath_id)
        if self._state.measured.forget(datapath_id):
            self._capacity_returned(now)

    def settings_changed(self, now: float) -> None:
        """Read as often as the settings say from now on."""
        settings = self._state.settings
        self._polling.set_pace(settings.counters.interval_s, settings.counters.messages_per_s)
        if settings.counters.interval_s == 0:
            for switch in self._state.live.network.switches:
                self._state.measured.forget(self._state.live.datapath_id(switch))
            self._capacity_returned(now)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return self._polling.next_deadline()

    def tick(self, now: float) -> None:
        """Ask the switch whose turn it is."""
        datapath_id = self._polling.tick(now)
        if datapath_id is not None:
            switch = self._state.live.switch_name(datapath_id)
            has_flows = switch is not None and self._state.flows.is_used(switch)
            groups = self._groups.take_due(datapath_id, now)
            self._outbox.put(ReadCounters(datapath_id, pinned=has_flows, groups=groups))
            if switch is not None:
                self._asked(switch)

    def refused(self, event: CountersRefused) -> None:
        """Record that a switch does not say what it has counted: it is asked no more while connected."""
        self._polling.remove(event.datapath_id)
        switch = self._state.live.switch_name(event.datapath_id)
        self._outbox.report("warning", f"the load of {switch} is not measured: {event.reason}", switch=switch)

    def take(self, event: CountersRead, now: float) -> None:
        """Record what a switch has counted."""
        self._polling.answered(event.datapath_id, event.messages)
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is None or not self._state.live.is_connected(switch):
            return
        if event.dropped is not None:
            self._groups.counted(switch, event.dropped, now)
        measured = self._state.measured
        measured.take(
            event.datapath_id,
            event.read_at,
            event.ports,
            event.pinned,
            lambda by: self._entry_port(switch, by),
        )
        changed = measured.follow(event.datapath_id, self._state.settings.counters.yielded_share)
        for arc, unrequested_bps in measured.take_unrequested_changes(event.datapath_id).items():
            self._tell(arc, unrequested_bps)
        if any(is_bps < was_bps for was_bps, is_bps in changed.values()):
            self._capacity_returned(now)

    def _entry_port(self, switch: str, by: PinnedBy) -> int | None:
        """Return the port of a switch behind which the sender of a pinned rule's packets is."""
        if isinstance(by, TcpConnection):
            host = self._state.hosts.find(by.source_ip)
        else:
            flow = self._state.flows.with_stamp(by) if is_stamp(by) else None
            host = None if flow is None else flow.source
        return host.port if host is not None and host.switch == switch else None

    def _tell(self, arc: str, unrequested_bps: float) -> None:
        link = self._state.live.arcs[arc].link
        facts = {"link": arc, "name": link, "unrequested_bps": unrequested_bps}
        text = (
            f"{arc} carries {unrequested_bps:.4g} bit/s that nobody has requested"
            if unrequested_bps
            else f"all that {arc} carries has been requested again"
        )
        self._outbox.tell(ClientEventKind.UNREQUESTED_TRAFFIC, text, facts)
