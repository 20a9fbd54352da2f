"""The os-ken application: OpenFlow 1.3 messages to events, the core's messages to OpenFlow."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TypeVar

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controller.core import events
from controller.core.messages import (
    CloseConnection,
    DatapathMessage,
    InstallRules,
    PacketOut,
    RemoveGroup,
    RemoveRules,
)
from controller.network import lldp
from controller.rules.model import Entry, GotoTable, Group, GroupChange, Match, Output, Rule, ToGroup

__all__ = ["ControllerApp"]

_ALL_BITS = 2**64 - 1

_MATCH_FIELDS = {
    "eth_type": "eth_type",
    "ip_protocol": "ip_proto",
    "source_ip": "ipv4_src",
    "destination_ip": "ipv4_dst",
    "source_port": "tcp_src",
    "destination_port": "tcp_dst",
    "source_mac": "eth_src",
}

_REMEMBERED = 4096
"""Transactions remembered, so that an error that comes back can be told from which rules it came."""


_Handler = TypeVar("_Handler", bound=Callable[..., None])


def _handles(event: type, states: object = None) -> Callable[[_Handler], _Handler]:
    """Return os-ken's decorator for a method that takes an event, with a type."""
    decorator: Callable[[_Handler], _Handler] = set_ev_cls(event, states)
    return decorator


class ControllerApp(app_manager.OSKenApp):  # type: ignore[misc]  # os-ken has no type information
    """Posts what switches say and sends them what the core wants.

    Args:
        post: Puts an event in the controller's queue; called from os-ken's threads.
    """

    OFP_VERSIONS = [ofp.OFP_VERSION]
    _EVENTS: list[type] = []

    def __init__(self, post: Callable[[events.Event], None]) -> None:
        super().__init__()
        self._post = post
        self._datapaths: dict[int, Any] = {}
        self._transactions = count(1)
        self._barriers: OrderedDict[tuple[int, int], int] = OrderedDict()  # (datapath id, xid) -> barrier
        self._lock = threading.Lock()

    def send(self, message: DatapathMessage) -> None:
        """Carry out a message; one for a switch that has gone is dropped: its loss is an event of its own."""
        datapath = self._datapaths.get(message.datapath_id)
        if datapath is None:
            return
        if isinstance(message, CloseConnection):
            self.logger.error("datapath %d is disconnected: %s", message.datapath_id, message.reason)
            datapath.close()
        elif isinstance(message, PacketOut):
            self._send_all(datapath, [_packet_out(datapath, message)], None)
        elif isinstance(message, RemoveRules):
            self._send_all(datapath, [_removal(datapath, message.cookie, _ALL_BITS)], None)
        elif isinstance(message, RemoveGroup):
            self._send_all(datapath, [_group_removal(datapath, message.group)], None)
        else:
            self._send_all(datapath, _installation(datapath, message), message.barrier)

    def _send_all(self, datapath: Any, messages: Iterable[Any], barrier: int | None) -> None:
        """Send messages in one piece: one entry of the connection's short queue, not many."""
        buffer = bytearray()
        for message in messages:
            xid = next(self._transactions) & 0xFFFFFFFF
            message.set_xid(xid)
            message.serialize()
            buffer += message.buf
            if barrier is not None:
                self._remember(datapath.id, xid, barrier)
        datapath.send(bytes(buffer))

    def _remember(self, datapath_id: int, xid: int, barrier: int) -> None:
        with self._lock:
            self._barriers[datapath_id, xid] = barrier
            while len(self._barriers) > _REMEMBERED:
                self._barriers.popitem(last=False)

    def _recall(self, message: Any) -> int | None:
        with self._lock:
            return self._barriers.get((message.datapath.id, message.xid))

    @_handles(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state_change(self, event: Any) -> None:
        """A switch finished its handshake or is gone."""
        datapath: Any = event.datapath
        datapath_id: Any = datapath.id
        if event.state == MAIN_DISPATCHER:
            former = self._datapaths.get(datapath_id)
            self._datapaths[datapath_id] = datapath
            if former is not None:
                former.close()
            live = frozenset(
                port.port_no
                for port in datapath.ports.values()
                if port.port_no <= ofp.OFPP_MAX and _is_up(port)
            )
            self._post(events.SwitchConnected(datapath_id, live))
        elif datapath_id in self._datapaths and self._datapaths[datapath_id] is datapath:
            del self._datapaths[datapath_id]
            self._post(events.SwitchDisconnected(datapath_id))

    @_handles(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port_status(self, event: Any) -> None:
        """A port was added, removed or changed."""
        message = event.msg
        port = message.desc
        if port.port_no > ofp.OFPP_MAX:
            return
        up = message.reason != ofp.OFPPR_DELETE and _is_up(port)
        kind = events.PortCameUp if up else events.PortWentDown
        self._post(kind(message.datapath.id, port.port_no))

    @_handles(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event: Any) -> None:
        """A switch handed a packet over: a discovery packet or ARP."""
        message = event.msg
        datapath_id, port, frame = message.datapath.id, message.match["in_port"], bytes(message.data)
        tail = lldp.parse(frame)
        if tail is None:
            self._post(events.PacketArrived(datapath_id, port, frame))
        else:
            self._post(events.LinkDiscovered(*tail, datapath_id, port))

    @_handles(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier_reply(self, event: Any) -> None:
        """A switch has carried out what was before a barrier."""
        barrier = self._recall(event.msg)
        if barrier is not None:
            self._post(events.BarrierReceived(event.msg.datapath.id, barrier))

    @_handles(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def on_error(self, event: Any) -> None:
        """A switch did not accept a message."""
        message = event.msg
        kind = ofp.ofp_error_type_to_str(message.type)
        reason = f"{kind}, {ofp.ofp_error_code_to_str(message.type, message.code)}"
        barrier = self._recall(message)
        if barrier is not None:
            self._post(events.RulesRefused(message.datapath.id, barrier, reason))
        else:
            self.logger.warning("datapath %d refused a message: %s", message.datapath.id, reason)


def _is_up(port: Any) -> bool:
    return not (port.state & ofp.OFPPS_LINK_DOWN or port.config & ofp.OFPPC_PORT_DOWN)


def _installation(datapath: Any, message: InstallRules) -> list[Any]:
    wipe = [_removal(datapath, 0, 0), _group_removal(datapath, ofp.OFPG_ALL)] if message.wipe else []
    entries = [_entry(datapath, entry) for entry in message.entries]
    return [*wipe, *entries, parser.OFPBarrierRequest(datapath)]


def _entry(datapath: Any, entry: Entry) -> Any:
    if isinstance(entry, Rule):
        return _flow_mod(datapath, entry)
    if isinstance(entry, GroupChange):
        return _group_mod(datapath, ofp.OFPGC_MODIFY, entry.group)
    return _group_mod(datapath, ofp.OFPGC_ADD, entry)


def _group_mod(datapath: Any, command: int, group: Group) -> Any:
    buckets = [
        parser.OFPBucket(bucket.weight, ofp.OFPP_ANY, ofp.OFPG_ANY, _output_actions(bucket.output))
        for bucket in group.buckets
    ]
    return parser.OFPGroupMod(datapath, command, ofp.OFPGT_SELECT, group.number, buckets)


def _group_removal(datapath: Any, group: int) -> Any:
    return parser.OFPGroupMod(datapath, ofp.OFPGC_DELETE, ofp.OFPGT_SELECT, group, [])


def _flow_mod(datapath: Any, rule: Rule) -> Any:
    return parser.OFPFlowMod(
        datapath,
        command=ofp.OFPFC_ADD,
        table_id=rule.table,
        priority=rule.priority,
        cookie=rule.cookie,
        match=_match(rule.match),
        instructions=_instructions(rule),
    )


def _match(match: Match) -> Any:
    fields = {_MATCH_FIELDS[name]: value for name, value in vars(match).items() if value is not None}
    return parser.OFPMatch(**fields)


def _instructions(rule: Rule) -> list[Any]:
    if isinstance(rule.action, GotoTable):
        return [parser.OFPInstructionGotoTable(rule.action.table)]
    if isinstance(rule.action, Output):
        actions = _output_actions(rule.action)
    elif isinstance(rule.action, ToGroup):
        actions = [parser.OFPActionGroup(rule.action.group)]
    else:
        actions = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
    return [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]


def _output_actions(output: Output) -> list[Any]:
    send = parser.OFPActionOutput(output.port)
    if output.source_mac is None:
        return [send]
    return [parser.OFPActionSetField(eth_src=output.source_mac), send]


def _removal(datapath: Any, cookie: int, mask: int) -> Any:
    return parser.OFPFlowMod(
        datapath,
        command=ofp.OFPFC_DELETE,
        table_id=ofp.OFPTT_ALL,
        cookie=cookie,
        cookie_mask=mask,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=parser.OFPMatch(),
    )


def _packet_out(datapath: Any, message: PacketOut) -> Any:
    return parser.OFPPacketOut(
        datapath,
        buffer_id=ofp.OFP_NO_BUFFER,
        in_port=ofp.OFPP_CONTROLLER,
        actions=[parser.OFPActionOutput(message.port)],
        data=message.frame,
    )
