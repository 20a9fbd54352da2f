"""A host that opens and closes the streams of one flow as the controller tells it."""

from __future__ import annotations

from typing import Any

from controller.model.events import LeaseRenewed, StreamsReported
from controller.model.messages import AllocationChanged
from controller.model.views import FlowView
from tests.fakes.openflow_table import ControlledNetwork


class GrowingHost:
    """It asks for a flow with `may_grow`, and follows what it is told when `follow` is called.

    Attributes:
        unusable: Ports that it finds taken when it is to connect from them.
        is_slow: It closes no stream yet: something is under way on them.
        open_ports: Of its streams.
    """

    def __init__(self, net: ControlledNetwork, owner: str = "a session", **request: Any) -> None:
        self._net = net
        self._owner = owner
        self.unusable: set[int] = set()
        self.is_slow = False
        flow = net.request(owner=owner, may_grow=True, **request)
        self.flow_id = flow.flow_id
        self._flow = flow
        self._heard = len(net.notifications)
        self.open_ports = {stream.source_port for stream in flow.streams}
        self._failed: set[int] = set()
        self._spare = [port for port in request["source_ports"] if port not in self.open_ports]
        self._next_port = 45000

    def renew(self, owner: str) -> None:
        """Begin another session."""
        self._owner = owner
        self._net.handle(LeaseRenewed(1, (self.flow_id,), owner))

    def follow(self) -> None:
        """Do what the last notification says, if there was any, and report."""
        told = [note.change for note in self._net.notifications[self._heard :] if note.owner == self._owner]
        self._heard = len(self._net.notifications)
        flows = [change.flow for change in told if isinstance(change, AllocationChanged)]
        if flows:
            self._flow = flows[-1]
        before = set(self.open_ports), set(self._failed)
        self._take(self._flow)
        if flows or before != (self.open_ports, self._failed):
            self.report()
            self._heard = min(self._heard, len(self._net.notifications))

    def _take(self, flow: FlowView) -> None:
        wanted = {stream.source_port for stream in flow.streams}
        for port in wanted - self.open_ports:
            if port in self._spare:
                self._spare.remove(port)
            if port in self.unusable:
                self._failed.add(port)
                self._bind_another()
            else:
                self.open_ports.add(port)
        self._failed &= wanted
        if not self.is_slow:
            for _ in self.open_ports - wanted:
                self._bind_another()
            self.open_ports &= wanted

    def _bind_another(self) -> None:
        self._spare.append(self._next_port)
        self._next_port += 1

    def report(self) -> None:
        """Say what is of its streams."""
        self._net.handle(
            StreamsReported(
                1, self.flow_id, frozenset(self.open_ports), frozenset(self._failed), tuple(self._spare)
            )
        )

    def still_leads(self, port: int) -> bool:
        """Return whether switches have rules for the connection from a port."""
        return any(rule.match.source_port == port for rule in self._net.switches.rules())
