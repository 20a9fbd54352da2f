"""The os-ken application: OpenFlow 1.3 messages to events, the core's messages to OpenFlow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controller.model import events, lldp
from controller.model.messages import CloseConnection, DatapathMessage, ReadCounters, ReadRuleCounters
from controller.model.packet_limits import PortLimits
from controller.model.reconcile import Installed
from controller.openflow.counters import MULTIPART_REPLY, CounterReading
from controller.openflow.decoding import read_packet_in, read_refusal
from controller.openflow.encoding import OWN_TRANSACTIONS, encode
from controller.openflow.readback import Readback
from controller.openflow.rule_counts import RuleCountReading

__all__ = ["ControllerApp"]

_PACKET_IN, _BARRIER_REPLY = 10, 21

_ARE_YOU_ALIVE = b"another switch has your datapath id"
_ECHO_PATIENCE_S = 1.0
"""A switch whose datapath id another claims has so long to answer."""

_Handler = TypeVar("_Handler", bound=Callable[..., None])


def _handles(event: type, states: object = None) -> Callable[[_Handler], _Handler]:
    """Return os-ken's decorator for a method that takes an event, with a type."""
    decorator: Callable[[_Handler], _Handler] = set_ev_cls(event, states)
    return decorator


class ControllerApp(app_manager.OSKenApp):  # type: ignore[misc]  # os-ken has no type information
    """Posts what switches say and sends them what the core wants.

    Args:
        post: Puts events in the controller's queue, side by side; called from os-ken's threads and the one
            that reads.
        lldp_key: What probes are signed with.
        may_be: Whether the switch whose certificate has a common name may have a datapath id.
    """

    OFP_VERSIONS = [ofp.OFP_VERSION]
    _EVENTS: list[type] = []

    def __init__(
        self,
        post: Callable[..., None],
        lldp_key: bytes,
        may_be: Callable[[str, int], bool] = lambda *_: True,
    ) -> None:
        super().__init__()
        self._may_be = may_be
        self._lldp_key = lldp_key
        self._limits = PortLimits()
        self._post = post
        self._taken: list[events.Event] = []  # in this round of reading
        self._datapaths: dict[int, Any] = {}
        self._transactions = count(1)
        self._unsent: dict[Any, list[bytes]] = {}
        self._readings: dict[Any, Readback] = {}  # switches that have not said yet what they have
        self._counting: dict[
            Any, CounterReading
        ] = {}  # switches that have not said yet what they have counted
        self._counting_rules: dict[Any, RuleCountReading] = {}  # the same of their rules
        self._watched: set[tuple[int, int]] = set()  # ports that their switch has said are live
        self._echoed: set[Any] = set()  # switches that have answered `_ARE_YOU_ALIVE`

    def send(self, message: DatapathMessage) -> None:
        """Carry out a message, at the latest with `flush`; one for a switch that has gone is dropped.

        The loss of a switch is an event of its own.
        """
        datapath = self._datapaths.get(message.datapath_id)
        if datapath is None:
            return
        if isinstance(message, CloseConnection):
            self.logger.error("datapath %d is disconnected: %s", message.datapath_id, message.reason)
            self._unsent.pop(datapath, None)
            datapath.close()
        else:
            if isinstance(message, ReadCounters):
                pinned = self._transaction() if message.pinned else None
                reading = self._counting[datapath] = CounterReading(self._transaction(), pinned)
                data = reading.requests()
            elif isinstance(message, ReadRuleCounters):
                asked = self._counting_rules[datapath] = RuleCountReading(self._transaction())
                data = asked.request()
            else:
                data = encode(message, self._transaction())
            self._unsent.setdefault(datapath, []).append(data)

    def flush(self) -> None:
        """Send what is unsent: one call a switch, however many messages there are."""
        unsent, self._unsent = self._unsent, {}
        for datapath, parts in unsent.items():
            datapath.send(b"".join(parts))

    def _transaction(self) -> int:
        return next(self._transactions) & 0xFFFF_FFFF | OWN_TRANSACTIONS

    def hand_over(self) -> None:
        """Post what has been taken since the last time; called from the thread that reads.

        The core is woken once for all switches that have answered, not for each.
        """
        if self._taken:
            taken, self._taken = self._taken, []
            self._post(*taken)

    def take(self, connection: Any, kind: int, transaction: int, whole: bytes) -> bool:
        """Take a message that comes often; returns False for those that os-ken reads."""
        if kind == _BARRIER_REPLY:
            self._taken.append(events.BarrierReceived(connection.id, transaction))
        elif kind == _PACKET_IN:
            packet = read_packet_in(whole)
            self._packet_arrived(connection.id, packet.port, packet.frame)
        elif kind == MULTIPART_REPLY and self._is_counting(connection, transaction):
            self._take_counters(connection, transaction, whole)
        elif kind == ofp.OFPT_ERROR and self._is_counting(connection, transaction):
            del self._counting[connection]
            refusal = read_refusal(whole)
            self._taken.append(events.CountersRefused(connection.id, _reason(refusal.type, refusal.code)))
        elif self._is_counting_rules(connection, kind, transaction):
            self._take_rule_counters(connection, kind, whole)
        elif kind == ofp.OFPT_ERROR and transaction < OWN_TRANSACTIONS:
            refusal = read_refusal(whole)
            reason = _reason(refusal.type, refusal.code)
            self._taken.append(events.RulesRefused(connection.id, transaction, reason, refusal.cookie))
        else:
            return False
        return True

    def _is_counting(self, connection: Any, transaction: int) -> bool:
        reading = self._counting.get(connection)
        return reading is not None and transaction in reading.unanswered

    def _take_counters(self, connection: Any, transaction: int, whole: bytes) -> None:
        """Take a part of what a switch has counted in, and hand over what is complete."""
        reading = self._counting[connection]
        if reading.take(transaction, whole):
            del self._counting[connection]
            self._taken.append(
                events.CountersRead(
                    connection.id, time.monotonic(), reading.ports, reading.pinned, reading.messages
                )
            )

    def _is_counting_rules(self, connection: Any, kind: int, transaction: int) -> bool:
        reading = self._counting_rules.get(connection)
        is_answer = kind in (MULTIPART_REPLY, ofp.OFPT_ERROR)
        return is_answer and reading is not None and transaction == reading.transaction

    def _take_rule_counters(self, connection: Any, kind: int, whole: bytes) -> None:
        """Take a part of what a switch's rules have counted in, and hand over what is complete."""
        reading = self._counting_rules[connection]
        is_refusal = kind == ofp.OFPT_ERROR
        if is_refusal or reading.take(whole):
            del self._counting_rules[connection]
            self._taken.append(events.RuleCountersRead(connection.id, None if is_refusal else reading.counts))

    def _packet_arrived(self, datapath_id: int, port: int, frame: bytes) -> None:
        """Hand a discovery packet or ARP over, unless its port has sent too many."""
        if not self._limits.allows(datapath_id, port, time.monotonic()):
            return
        tail = lldp.parse(frame, self._lldp_key)
        if tail is None:
            self._taken.append(events.PacketArrived(datapath_id, port, frame))
        else:
            self._taken.append(events.LinkDiscovered(*tail, datapath_id, port))

    @_handles(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state_change(self, event: Any) -> None:
        """A switch finished its handshake or is gone."""
        datapath: Any = event.datapath
        datapath_id: Any = datapath.id
        if event.state == MAIN_DISPATCHER:
            reading = self._readings[datapath] = Readback()
            requests = [
                parser.OFPFlowStatsRequest(datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY),
                parser.OFPGroupDescStatsRequest(datapath, 0),
                parser.OFPMeterFeaturesStatsRequest(datapath, 0),
                parser.OFPMeterConfigStatsRequest(datapath, 0, ofp.OFPM_ALL),
            ]
            for place, request in enumerate(requests):
                request.set_xid(self._transaction())
                reading.unanswered.add(request.xid)
                if place >= 2:
                    reading.optional.add(request.xid)
                request.serialize()
                datapath.send(bytes(request.buf))
            return
        self._readings.pop(datapath, None)
        self._counting.pop(datapath, None)
        self._counting_rules.pop(datapath, None)
        self._echoed.discard(datapath)
        if self._datapaths.get(datapath_id) is datapath:
            del self._datapaths[datapath_id]
            self._limits.forget(datapath_id)
            self._post(events.SwitchDisconnected(datapath_id))

    @_handles(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    @_handles(ofp_event.EventOFPGroupDescStatsReply, MAIN_DISPATCHER)
    @_handles(ofp_event.EventOFPMeterFeaturesStatsReply, MAIN_DISPATCHER)
    @_handles(ofp_event.EventOFPMeterConfigStatsReply, MAIN_DISPATCHER)
    def on_readback(self, event: Any) -> None:
        """A switch says which rules, groups or meters it has: with all it takes part."""
        datapath = event.msg.datapath
        reading = self._readings.get(datapath)
        if reading is not None and reading.take(event.msg):
            self._take_part(datapath, reading.result())

    def _take_part(self, datapath: Any, installed: Installed | None) -> None:
        """Let a switch take part, unless another with its datapath id does and is alive."""
        self._readings.pop(datapath, None)
        certified = datapath.certified
        if certified is not None and not self._may_be(certified, datapath.id):
            self.logger.error(
                "the switch at %s has the certificate of %r and claims datapath id %d: it is sent away",
                datapath.address,
                certified,
                datapath.id,
            )
            datapath.close()
            return
        former = self._datapaths.get(datapath.id)
        if former is None:
            self._join(datapath, installed)
            return
        self._echoed.discard(former)
        former.send_msg(parser.OFPEchoRequest(former, data=_ARE_YOU_ALIVE))
        timer = threading.Timer(_ECHO_PATIENCE_S, self._settle, (datapath, former, installed))
        timer.daemon = True
        timer.start()

    def _settle(self, newcomer: Any, former: Any, installed: Installed | None) -> None:
        """Keep the one of two switches with the same datapath id that was there, if it has answered."""
        is_alive = former in self._echoed
        if is_alive and self._datapaths.get(newcomer.id) == former:
            self.logger.warning(
                "a second switch connects with datapath id %d from %s, while the first at %s is alive: it is "
                "sent away",
                newcomer.id,
                newcomer.address,
                former.address,
            )
            newcomer.close()
        elif newcomer.state != DEAD_DISPATCHER:
            former.close()
            self._join(newcomer, installed)

    def _join(self, datapath: Any, installed: Installed | None) -> None:
        self._datapaths[datapath.id] = datapath
        live = frozenset(
            port.port_no
            for port in datapath.ports.values()
            if port.port_no <= ofp.OFPP_MAX and self._is_up(datapath.id, port)
        )
        names = tuple(
            (port.port_no, port.name.decode(errors="replace"))
            for port in datapath.ports.values()
            if port.port_no <= ofp.OFPP_MAX
        )
        self._post(events.SwitchConnected(datapath.id, live, installed, names))

    @_handles(ofp_event.EventOFPEchoReply, MAIN_DISPATCHER)
    def on_echo_reply(self, event: Any) -> None:
        """A switch is alive."""
        if bytes(event.msg.data or b"") == _ARE_YOU_ALIVE:
            self._echoed.add(event.msg.datapath)

    @_handles(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event: Any) -> None:
        """A port was added, removed or changed."""
        message = event.msg
        port = message.desc
        if port.port_no > ofp.OFPP_MAX:
            return
        up = message.reason != ofp.OFPPR_DELETE and self._is_up(message.datapath.id, port)
        kind = events.PortCameUp if up else events.PortWentDown
        self._post(kind(message.datapath.id, port.port_no))

    def _is_up(self, datapath_id: int, port: Any) -> bool:
        """Return whether packets pass a port: it is up, and live where its switch watches the link (BFD)."""
        if port.state & ofp.OFPPS_LINK_DOWN or port.config & ofp.OFPPC_PORT_DOWN:
            return False
        if port.state & ofp.OFPPS_LIVE:
            self._watched.add((datapath_id, port.port_no))
            return True
        return (datapath_id, port.port_no) not in self._watched

    @_handles(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def on_error(self, event: Any) -> None:
        """A switch did not accept a message."""
        message = event.msg
        datapath, reason = message.datapath, _reason(message.type, message.code)
        reading = self._readings.get(datapath)
        if reading is not None and message.xid in reading.unanswered & reading.optional:
            if reading.refused(message.xid):
                self._take_part(datapath, reading.result())
        elif reading is not None and message.xid in reading.unanswered:
            self.logger.warning(
                "datapath %d cannot say what it has (%s): it begins from nothing", datapath.id, reason
            )
            self._take_part(datapath, None)
        else:
            self.logger.warning("datapath %d refused a message: %s", datapath.id, reason)


def _reason(kind: int, code: int) -> str:
    return f"{ofp.ofp_error_type_to_str(kind)}, {ofp.ofp_error_code_to_str(kind, code)}"
