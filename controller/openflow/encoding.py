"""The core's rules and messages as os-ken's OpenFlow 1.3 messages."""

from __future__ import annotations

from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controller.core.messages import InstallRules, PacketOut
from controller.rules.model import Entry, GotoTable, Group, GroupChange, Match, Output, Rule, ToGroup

__all__ = [
    "ALL_BITS",
    "MATCH_FIELDS",
    "group_removal",
    "installation",
    "packet_out",
    "removal",
    "strict_removal",
]

ALL_BITS = 2**64 - 1

MATCH_FIELDS = {
    "eth_type": "eth_type",
    "ip_protocol": "ip_proto",
    "source_ip": "ipv4_src",
    "destination_ip": "ipv4_dst",
    "source_port": "tcp_src",
    "destination_port": "tcp_dst",
    "source_mac": "eth_src",
}


def installation(datapath: Any, message: InstallRules) -> list[Any]:
    """Return the messages that install entries, with the barrier that confirms them."""
    wipe = [removal(datapath, 0, 0), group_removal(datapath, ofp.OFPG_ALL)] if message.wipe else []
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


def group_removal(datapath: Any, group: int) -> Any:
    """Return the message that removes a group."""
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
    fields = {MATCH_FIELDS[name]: value for name, value in vars(match).items() if value is not None}
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


def strict_removal(datapath: Any, rule: Rule) -> Any:
    """Return the message that removes one rule and no other."""
    return parser.OFPFlowMod(
        datapath,
        command=ofp.OFPFC_DELETE_STRICT,
        table_id=rule.table,
        priority=rule.priority,
        cookie=rule.cookie,
        cookie_mask=ALL_BITS,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=_match(rule.match),
    )


def removal(datapath: Any, cookie: int, mask: int) -> Any:
    """Return the message that removes all rules whose cookie has these bits."""
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


def packet_out(datapath: Any, message: PacketOut) -> Any:
    """Return the message that sends a frame out of a port."""
    return parser.OFPPacketOut(
        datapath,
        buffer_id=ofp.OFP_NO_BUFFER,
        in_port=ofp.OFPP_CONTROLLER,
        actions=[parser.OFPActionOutput(message.port)],
        data=message.frame,
    )
