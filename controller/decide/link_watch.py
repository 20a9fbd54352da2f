"""Watches links and ports: sends probes, follows what switches say, and tells clients what has changed."""

from __future__ import annotations

from collections.abc import Collection

from controller.decide.component import Component, Context
from controller.model import lldp
from controller.model.client_events import ClientEventKind
from controller.model.events import LinkDiscovered, PortCameUp, PortWentDown
from controller.model.journal import JournaledDict
from controller.model.messages import PacketOut
from controller.state.discovery import Discovery


class LinkWatch(Component):
    """Keeps the live network as ports and probes show it."""

    def __init__(self, shared: Context) -> None:
        super().__init__(shared)
        settings = self._state.settings
        self._discovery = Discovery(settings.probe_interval_s, settings.silence_s)
        self._down_since: JournaledDict[str, float] = JournaledDict()  # by link

    def settings_changed(self) -> None:
        """Probe as the settings say now."""
        settings = self._state.settings
        self._discovery.set_times(settings.probe_interval_s, settings.silence_s)

    def switch_joined(self, datapath_id: int, live_ports: Collection[int], now: float) -> None:
        """Probe the ports of a switch, and expect the links that were seen before."""
        live = self._state.live
        for port in sorted(live_ports):
            self._discovery.add((datapath_id, port))
        for tail, head in live.seen_links(datapath_id):
            if live.is_connected_id(tail[0]) and live.is_connected_id(head[0]):
                self._discovery.expect(tail, head, now)

    def switch_left(self, datapath_id: int) -> None:
        """Probe the ports of a switch no more."""
        for port in self._state.live.live_ports_of(datapath_id):
            self._discovery.remove(port)

    def port_came_up(self, event: PortCameUp) -> None:
        """Record that a port came up."""
        self._tell_port(event, ClientEventKind.PORT_UP)
        self._state.live.port_up(event.datapath_id, event.port)
        if self._state.live.port_is_live(event.datapath_id, event.port):
            self._discovery.add((event.datapath_id, event.port))

    def port_went_down(self, event: PortWentDown) -> None:
        """Record that a port went down."""
        self._tell_port(event, ClientEventKind.PORT_DOWN)
        self._state.live.port_down(event.datapath_id, event.port)
        self._discovery.remove((event.datapath_id, event.port))

    def _tell_port(self, event: PortCameUp | PortWentDown, kind: ClientEventKind) -> None:
        """Tell clients of a port of the file that is about to change; ports may change without need."""
        live, is_up = self._state.live, kind is ClientEventKind.PORT_UP
        arc, switch = live.arc_at(event.datapath_id, event.port), live.switch_name(event.datapath_id)
        if arc is None or live.port_is_live(event.datapath_id, event.port) == is_up:
            return
        text = f"port {event.port} of {switch} towards {arc.head} {'came up' if is_up else 'went down'}"
        level = "info" if is_up else "warning"
        self._outbox.tell(kind, text, {"switch": switch, "port": event.port, "link": arc.link}, level)

    def discovered(self, event: LinkDiscovered, now: float) -> bool:
        """Record that a probe has arrived; returns whether it was the first of its link."""
        live = self._state.live
        tail, head = (event.tail_datapath_id, event.tail_port), (event.head_datapath_id, event.head_port)
        is_new = not live.is_known(tail, head)
        if is_new:
            fault = live.discovered(tail, head)
            if fault is not None:
                self._outbox.report("warning", fault)
        # It is not known if a port went down while the packet was under way.
        if not is_new or live.is_known(tail, head):
            self._discovery.heard(tail, head, now)
        return is_new

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        return self._discovery.next_deadline()

    def tick(self, now: float) -> bool:
        """Give up links that no longer answer, and send the probes that are due; returns whether one went."""
        lost = self._discovery.take_lost(now)
        for tail, head in lost:
            self._state.live.lost(tail, head)
        key = self._state.settings.lldp_key
        for datapath_id, port in self._discovery.tick(now):
            self._outbox.put(PacketOut(datapath_id, port, lldp.build(datapath_id, port, key)))
        return bool(lost)

    def take_changed(self, now: float) -> tuple[tuple[str, ...], list[str]]:
        """Return the links that went or returned since the last time, and those of them that are down."""
        live = self._state.live
        changed = live.take_changed_links()
        down = [link for link in changed if not live.link_is_up(link)]
        for link in changed:
            if link in down:
                self._down_since[link] = now
                self._outbox.tell(
                    ClientEventKind.LINK_DOWN, f"link {link} is down", {"link": link}, "warning"
                )
            else:
                since = self._down_since.pop(link, None)
                facts = {"link": link, "down_s": None if since is None else now - since}
                self._outbox.tell(ClientEventKind.LINK_UP, f"link {link} is up", facts)
        return changed, down
