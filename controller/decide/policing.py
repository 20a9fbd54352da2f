"""Which flows are held to their rates where they enter the network, and by what."""

from __future__ import annotations

from controller.compile.policing import policing
from controller.decide.component import Component, Context
from controller.decide.switch_rules import SwitchRules
from controller.model.journal import JournaledDict
from controller.model.messages import RemoveMeter
from controller.model.rules import Entry, Meter, MeterChange, Rule, TcpConnection
from controller.state.flow import Flow

_Policed = tuple[Meter, tuple[Rule, ...]]


class Policing(Component):
    """Gives switches the meters of active flows, where the settings ask for it and they have meters."""

    def __init__(self, shared: Context, rules: SwitchRules) -> None:
        super().__init__(shared)
        self._rules = rules
        # By number of the flow and switch, what connected switches have been sent.
        self._sent: JournaledDict[int, JournaledDict[str, _Policed]] = JournaledDict()

    def follow(self, flow: Flow) -> None:
        """Give switches what a flow needs that has begun, ended, or got other paths or rates."""
        if not self._sent and not self._state.settings.policing_burst_s:
            return
        wanted = self._wanted(flow) if self._state.flows.get(flow.id) is flow else {}
        before = dict(self._sent.get(flow.number, {}))
        for switch in before.keys() | wanted.keys():
            self._send(flow.number, switch, before.get(switch), wanted.get(switch))

    def settings_changed(self) -> None:
        """Police all flows as the settings say now."""
        for flow in self._state.flows:
            self.follow(flow)

    def connect(self, switch: str) -> None:
        """Know what a switch should have that has just connected."""
        self.disconnect(switch)
        for flow in self._state.flows.through(switch):
            policed = self._wanted(flow).get(switch)
            if policed is not None:
                self._sent.setdefault(flow.number, JournaledDict())[switch] = policed

    def disconnect(self, switch: str) -> None:
        """Forget what a switch had."""
        for sent in self._sent.values():
            sent.pop(switch, None)

    def sent_to(self, switch: str) -> tuple[Meter | Rule, ...]:
        """Return what a switch has been sent; a flow's meter is before its rules."""
        entries: list[Meter | Rule] = []
        for meter, rules in [sent[switch] for sent in self._sent.values() if switch in sent]:
            entries += (meter, *rules)
        return tuple(entries)

    def _wanted(self, flow: Flow) -> dict[str, _Policed]:
        burst_s = self._state.settings.policing_burst_s
        if not burst_s or not flow.is_active:
            return {}
        entering: dict[str, tuple[float, dict[TcpConnection, None]]] = {}
        for stream in flow.streams:
            bps, connections = entering.get(stream.path[1], (0.0, {}))
            connections[flow.connection_from(stream.source_port)] = None
            bps += flow.framing.wire_bps(stream.rate_bps, flow.framed_streams)
            entering[stream.path[1]] = bps, connections
        return {
            switch: policing(flow.number, bps, flow.framing.packet_bytes, burst_s, connections)
            for switch, (bps, connections) in entering.items()
            if switch in self._state.metered_ports
        }

    def _send(self, number: int, switch: str, sent: _Policed | None, wanted: _Policed | None) -> None:
        if sent == wanted:
            return
        of_flow = self._sent.setdefault(number, JournaledDict())
        entries: tuple[Entry, ...] = () if wanted is None else (wanted[0], *wanted[1])
        if sent is not None and wanted is not None and sent[1] == wanted[1]:
            entries = (MeterChange(wanted[0]),)
        elif sent is not None:
            self._outbox.put(RemoveMeter(self._state.live.datapath_id(switch), sent[0].number))
        if wanted is None:
            del of_flow[switch]
        else:
            of_flow[switch] = wanted
            self._transactions.send(switch, entries, self._rules.failed)
        if not of_flow:
            del self._sent[number]
