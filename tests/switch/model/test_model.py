"""The model switch against os-ken's own encoding of OpenFlow 1.3, which shares no code with it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from os_ken.ofproto import ofproto_parser, ofproto_v1_3_parser
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from switch.model import ModelSwitch
from switch.model.openflow import ErrorReason, FlowMod, GroupMod, MalformedMessage

parser: Any = ofproto_v1_3_parser
DATAPATH = ProtocolDesc(version=ofp.OFP_VERSION)
IPV4_DESTINATION, IN_PORT, ETH_TYPE = 12, 0, 5


def encoded(message: Any, xid: int = 7) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def decoded(data: bytes) -> Iterator[Any]:
    while data:
        version, kind, length, xid = struct.unpack_from("!BBHI", data)
        datapath = SimpleNamespace(ofproto=ofp, ofproto_parser=parser, id=1)
        yield ofproto_parser.msg(datapath, version, kind, length, xid, data[:length])
        data = data[length:]


def rule(ip: str = "10.0.0.1", cookie: int = 1, port: int = 2, table: int = 1, **fields: Any) -> bytes:
    match = parser.OFPMatch(eth_type=0x0800, ipv4_dst=ip)
    actions = [parser.OFPActionOutput(port)]
    instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
    return encoded(
        parser.OFPFlowMod(
            DATAPATH,
            cookie=cookie,
            table_id=table,
            priority=9,
            match=match,
            instructions=instructions,
            **fields,
        )
    )


def group(number: int, kind: int, ports: list[int], command: int = ofp.OFPGC_ADD) -> bytes:
    watched = kind == ofp.OFPGT_FF
    buckets = [
        parser.OFPBucket(
            0 if watched else 1,
            port if watched else ofp.OFPP_ANY,
            ofp.OFPG_ANY,
            [parser.OFPActionOutput(port)],
        )
        for port in ports
    ]
    return encoded(parser.OFPGroupMod(DATAPATH, command, kind, number, buckets))


def removal(cookie: int, mask: int) -> bytes:
    return encoded(
        parser.OFPFlowMod(
            DATAPATH,
            command=ofp.OFPFC_DELETE,
            table_id=ofp.OFPTT_ALL,
            cookie=cookie,
            cookie_mask=mask,
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
            match=parser.OFPMatch(),
        )
    )


@pytest.fixture
def switch() -> ModelSwitch:
    return ModelSwitch(5, frozenset({1, 2, 3}), "s5")


def barrier(xid: int = 99) -> bytes:
    return encoded(parser.OFPBarrierRequest(DATAPATH), xid)


def test_the_handshake_is_what_os_ken_expects(switch: ModelSwitch) -> None:
    assert next(decoded(switch.connect())).version == ofp.OFP_VERSION
    (features,) = decoded(switch.receive(encoded(parser.OFPFeaturesRequest(DATAPATH))))
    assert features.datapath_id == 5
    (ports,) = decoded(switch.receive(encoded(parser.OFPPortDescStatsRequest(DATAPATH, 0))))
    assert [port.port_no for port in ports.body] == [1, 2, 3]
    assert [port.name for port in ports.body] == [b"s5-eth1", b"s5-eth2", b"s5-eth3"]


def test_a_message_may_come_in_pieces(switch: ModelSwitch) -> None:
    data = rule() + barrier()
    answers = b"".join(switch.receive(data[place : place + 3]) for place in range(0, len(data), 3))
    assert [answer.xid for answer in decoded(answers)] == [99]
    assert len(switch.tables) == 1


def test_rules_are_read_back_as_they_were_sent(switch: ModelSwitch) -> None:
    switch.receive(
        rule("10.0.0.1", cookie=0xA1) + rule("10.0.0.2", cookie=0xA2) + rule("10.0.1.1", cookie=0xB1)
    )
    request = parser.OFPFlowStatsRequest(
        DATAPATH, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0xA0, 0xF0, parser.OFPMatch()
    )
    (reply,) = decoded(switch.receive(encoded(request)))
    by_cookie = {entry.cookie: entry for entry in reply.body}
    assert by_cookie.keys() == {0xA1, 0xA2}
    assert by_cookie[0xA2].match["ipv4_dst"] == "10.0.0.2"
    assert (by_cookie[0xA2].priority, by_cookie[0xA2].table_id) == (9, 1)
    assert by_cookie[0xA2].instructions[0].actions[0].port == 2


def test_many_rules_come_in_several_replies(switch: ModelSwitch) -> None:
    for number in range(2000):
        switch.receive(rule(f"10.0.{number >> 8}.{number & 255}", cookie=number))
    request = parser.OFPFlowStatsRequest(
        DATAPATH, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch()
    )
    replies = list(decoded(switch.receive(encoded(request))))
    assert len(replies) > 1
    assert [reply.flags for reply in replies] == [1] * (len(replies) - 1) + [0]
    assert sum(len(reply.body) for reply in replies) == 2000


def test_rules_go_by_their_cookie(switch: ModelSwitch) -> None:
    switch.receive(rule("10.0.0.1", cookie=1) + rule("10.0.0.2", cookie=2))
    switch.receive(removal(1, 2**64 - 1))
    assert [stored.change.cookie for stored in switch.tables.rules()] == [2]
    switch.receive(removal(0, 0))
    assert len(switch.tables) == 0


def test_a_full_table_refuses(switch: ModelSwitch) -> None:
    switch.tables.max_rules = 1
    answers = list(decoded(switch.receive(rule("10.0.0.1") + rule("10.0.0.2") + barrier())))
    assert [(type(answer).__name__, answer.xid) for answer in answers] == [
        ("OFPErrorMsg", 7),
        ("OFPBarrierReply", 99),
    ]
    assert (answers[0].type, answers[0].code) == (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL)


def test_errors_may_come_after_the_barrier(switch: ModelSwitch) -> None:
    switch.faults.errors_after_barrier = True
    switch.tables.max_rules = 0
    answers = decoded(switch.receive(rule() + barrier()))
    assert [type(answer).__name__ for answer in answers] == ["OFPBarrierReply", "OFPErrorMsg"]


def test_a_chosen_change_is_refused(switch: ModelSwitch) -> None:
    def refuse(change: FlowMod | GroupMod) -> ErrorReason | None:
        return ErrorReason.BAD_TABLE if isinstance(change, FlowMod) and change.cookie == 2 else None

    switch.faults.refuse = refuse
    switch.receive(rule("10.0.0.1", cookie=1) + rule("10.0.0.2", cookie=2))
    assert [stored.change.cookie for stored in switch.tables.rules()] == [1]


def test_groups_are_added_once_and_take_their_rules_along(switch: ModelSwitch) -> None:
    add = group(4, ofp.OFPGT_SELECT, [1, 2])
    (refused,) = decoded(switch.receive(add + add))
    assert (refused.type, refused.code) == (ofp.OFPET_GROUP_MOD_FAILED, ofp.OFPGMFC_GROUP_EXISTS)
    (refused,) = decoded(switch.receive(group(5, ofp.OFPGT_SELECT, [1], ofp.OFPGC_MODIFY)))
    assert refused.code == ofp.OFPGMFC_UNKNOWN_GROUP
    actions = [parser.OFPActionGroup(4)]
    instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
    switch.receive(encoded(parser.OFPFlowMod(DATAPATH, match=parser.OFPMatch(), instructions=instructions)))
    assert len(switch.tables) == 1
    switch.receive(group(4, ofp.OFPGT_SELECT, [], ofp.OFPGC_DELETE))
    assert len(switch.tables) == 0


def test_a_fast_failover_group_passes_ports_over_that_are_down(switch: ModelSwitch) -> None:
    actions = [parser.OFPActionGroup(4)]
    instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
    switch.receive(group(4, ofp.OFPGT_FF, [2, 3]))
    switch.receive(encoded(parser.OFPFlowMod(DATAPATH, match=parser.OFPMatch(), instructions=instructions)))
    assert switch.tables.forward({}, switch.down)[0] == 2
    switch.set_port(2, up=False)
    assert switch.tables.forward({}, switch.down)[0] == 3


def test_a_packet_takes_the_best_rule_of_each_table(switch: ModelSwitch) -> None:
    goto = [parser.OFPInstructionGotoTable(1)]
    switch.receive(
        encoded(parser.OFPFlowMod(DATAPATH, table_id=0, match=parser.OFPMatch(), instructions=goto))
    )
    switch.receive(rule("10.0.0.1", port=2))
    there = {ETH_TYPE: b"\x08\x00", IPV4_DESTINATION: bytes([10, 0, 0, 1])}
    assert switch.tables.forward(there)[0] == 2
    assert switch.tables.forward({**there, IPV4_DESTINATION: bytes(4)})[0] is None


def test_a_frame_comes_to_the_controller_whole(switch: ModelSwitch) -> None:
    (message,) = decoded(switch.frame_arrived(3, b"frame"))
    assert (message.match["in_port"], bytes(message.data)) == (3, b"frame")


def test_a_packet_out_leaves_by_live_ports_alone(switch: ModelSwitch) -> None:
    sent: list[tuple[int, bytes]] = []
    switch.send_out = lambda port, frame: sent.append((port, frame))
    out = encoded(
        parser.OFPPacketOut(
            DATAPATH, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, [parser.OFPActionOutput(3)], b"probe"
        )
    )
    switch.receive(out)
    switch.set_port(3, up=False)
    switch.receive(out)
    assert sent == [(3, b"probe")]


def test_what_is_no_openflow_is_an_error(switch: ModelSwitch) -> None:
    with pytest.raises(MalformedMessage):
        switch.receive(b"GET / HTTP/1.1\r\n\r\n")
