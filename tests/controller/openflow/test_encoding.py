"""Messages as bytes: os-ken, which builds them as objects, is the oracle; what comes back is what went in."""

import contextlib
import struct
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_3, ofproto_v1_3_parser

from controller.model.labels import FLOW, STOP, LabelFormat
from controller.model.messages import (
    DatapathMessage,
    InstallRules,
    PacketOut,
    RemoveGroup,
    RemoveMeter,
    RemoveRule,
    RemoveRules,
)
from controller.model.rules import (
    Action,
    Bucket,
    Drop,
    GotoTable,
    Group,
    GroupChange,
    Match,
    Meter,
    MeterChange,
    Output,
    RestoreLabel,
    Rule,
    ToController,
    ToGroup,
    ToTables,
    Untag,
    eth_type_of,
)
from controller.openflow.decoding import Malformed, read_expired, read_match, read_packet_in, read_refusal
from controller.openflow.encoding import OWN_TRANSACTIONS, encode
from controller.openflow.readback import Readback
from switch.model import openflow as model
from topologies.model import ip_version

PARSER = ofproto_v1_3_parser
DATAPATH = ofproto_protocol.ProtocolDesc(version=ofproto_v1_3.OFP_VERSION)

ipv4, ipv6 = (st.ip_addresses(v=version).map(str) for version in (4, 6))
families = st.sampled_from([(0x0800, ipv4), (0x86DD, ipv6)])
macs = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))
ports = st.integers(1, 0xFFFF)
labels = macs | st.integers(1, 40).map(lambda bits: LabelFormat(bits).beginning_with(STOP, FLOW))
matches = st.one_of(
    st.just(Match()),
    st.builds(Match, eth_type=st.just(0x88CC), in_port=st.none() | ports),
    st.builds(Match, in_port=st.none() | ports, destination_mac=labels),
    st.builds(Match, st.just(0x86DD), st.just(58), icmp_type=st.sampled_from([135, 136])),
    st.builds(Match, st.just(0x86DD), st.just(58), icmp_type=st.just(135), neighbour_ip=ipv6),
    st.builds(Match, st.just(0x0806), source_ip=st.none() | ipv4, destination_ip=ipv4),
    families.flatmap(
        lambda of: st.builds(Match, st.just(of[0]), destination_ip=of[1], source_mac=st.none() | macs)
    ),
    families.flatmap(
        lambda of: st.builds(Match, st.just(of[0]), st.sampled_from([6, 17]), of[1], of[1], ports, ports)
    ),
)
shifts, tags = st.integers(0, 20), st.integers(1, 4094)
outputs = st.builds(
    Output,
    ports,
    st.none() | macs,
    st.booleans(),
    st.none() | macs,
    shifts,
    saves_label=st.booleans(),
    tag=st.none() | tags,
)
to_groups = st.builds(ToGroup, st.integers(0, 1 << 26), st.none() | macs, st.none() | macs, shifts)
actions: st.SearchStrategy[Action] = st.one_of(
    outputs,
    to_groups,
    st.just(ToController()),
    st.builds(GotoTable, st.integers(1, 3)),
    st.just(Drop()),
    st.builds(RestoreLabel, macs, st.integers(1, 3)),
    st.builds(Untag, st.integers(0, 6)),
    st.builds(ToTables, st.integers(1, 6), st.integers(1, 6)),
)
cookies = st.integers(0, 2**64 - 1)
rules = st.builds(
    Rule,
    st.integers(0, 2),
    st.integers(0, 400),
    matches,
    actions,
    cookies,
    st.integers(0, 1000),
    st.none() | st.integers(1, 1 << 31),
).filter(lambda rule: rule.meter is None or rule.action != Drop())
selects = st.builds(Bucket, st.integers(1, 1000), outputs | to_groups)
failovers = st.builds(Bucket, st.just(0), outputs, ports)
groups = st.builds(
    Group,
    st.integers(1, 1 << 26),
    st.lists(selects, min_size=1).map(tuple) | st.lists(failovers, min_size=1).map(tuple),
)


def whole_match(flow_mod: bytes) -> bytes:
    """Return the fields of the match of a flow mod."""
    return flow_mod[52 : 48 + int.from_bytes(flow_mod[50:52], "big")]


@given(rules)
def test_a_rule_is_read_back_as_it_was_sent(rule: Rule) -> None:
    data = encode(InstallRules(1, (rule,), 77), 0)
    (_, xid, whole), (kind, barrier_xid, _) = model.take_messages(bytearray(data))
    assert (xid, kind, barrier_xid) == (77, model.Kind.BARRIER_REQUEST, 77)
    change = model.parse_flow_mod(whole)
    assert read_match(whole_match(whole)) == rule.match
    entry = model.flow_stats_entry(change, model.Count())
    assert read_back(entry, b"") == ((rule,), ())


@given(groups)
def test_a_group_is_read_back_as_it_was_sent(group: Group) -> None:
    (_, _, whole), _ = model.take_messages(bytearray(encode(InstallRules(1, (group,), 1), 0)))
    change = model.parse_group_mod(whole)
    assert change.command == 0
    assert len(change.buckets()) == len(group.buckets)
    head = struct.pack("!HBxI", 8 + len(change.bucket_bytes), change.type, change.number)
    assert read_back(b"", head + change.bucket_bytes) == ((), (group,))


def multipart(kind: int, transaction: int, body: bytes) -> bytes:
    return model.message(model.Kind.MULTIPART_REPLY, transaction, struct.pack("!HH4x", kind, 0) + body)


def reading_back() -> Readback:
    return Readback(count(1).__next__)


def read_back(flows: bytes, groups: bytes) -> tuple[tuple[Rule, ...], tuple[Group, ...]]:
    reading = reading_back()
    reading.take(1, multipart(model.Multipart.FLOW, 1, flows))
    reading.take(2, multipart(model.Multipart.GROUP_DESCRIPTION, 2, groups))
    assert not reading.refused(3)
    assert reading.refused(4)
    installed = reading.result()
    assert installed is not None
    assert not installed.foreign_cookies
    assert not installed.foreign_groups
    return installed.rules, installed.groups


def osken(whole: bytes) -> Any:
    version, kind, length, xid = ofproto_parser.header(whole)
    return ofproto_parser.msg(DATAPATH, version, kind, length, xid, whole)


RULE = Rule(1, 100, Match(eth_type=0x0800, destination_ip="10.0.0.1"), Output(3), 0x4D53_0002_0000_0001)


@pytest.mark.parametrize(
    "message",
    [
        InstallRules(1, (RULE,), 5, wipe=True),
        InstallRules(1, (RULE._replace(idle_s=300),), 5),
        InstallRules(1, (GroupChange(Group(7, (Bucket(1, Output(2)),))),), 5),
        InstallRules(1, (Meter(3, 100, 200), MeterChange(Meter(3, 50, 200, True))), 5),
        PacketOut(1, 3, b"frame" * 20),
        RemoveRules(1, RULE.cookie),
        RemoveRule(1, RULE),
        RemoveGroup(1, 7),
        RemoveMeter(1, 7),
    ],
)
def test_osken_writes_the_same_bytes(message: DatapathMessage) -> None:
    data = encode(message, OWN_TRANSACTIONS | 9)
    again = bytearray()
    for _, _, whole in model.take_messages(bytearray(data)):
        read = osken_request(whole)
        read.serialize()
        again += read.buf
    assert bytes(again) == data


def osken_request(whole: bytes) -> Any:
    """Return a message of ours as os-ken's object: those that it cannot read are built again."""
    kind, xid = whole[1], int.from_bytes(whole[4:8], "big")
    if kind == model.Kind.FLOW_MOD:
        read = PARSER.OFPFlowMod.parser(DATAPATH, 4, kind, len(whole), xid, whole)
    elif kind == model.Kind.GROUP_MOD:
        change = model.parse_group_mod(whole)
        read = PARSER.OFPGroupMod(DATAPATH, change.command, change.type, change.number, buckets(change))
    elif kind == model.Kind.METER_MOD:
        command, flags, number = struct.unpack_from("!HHI", whole, 8)
        bands = [PARSER.OFPMeterBandDrop(*struct.unpack_from("!4xII", whole, 16))] if whole[16:] else []
        read = PARSER.OFPMeterMod(DATAPATH, command, flags, number, bands)
    elif kind == model.Kind.PACKET_OUT:
        (action,), frame = model.parse_packet_out(whole)
        read = PARSER.OFPPacketOut(
            DATAPATH,
            buffer_id=ofproto_v1_3.OFP_NO_BUFFER,
            in_port=ofproto_v1_3.OFPP_CONTROLLER,
            actions=[PARSER.OFPActionOutput(action.port)],
            data=frame,
        )
    else:
        read = PARSER.OFPBarrierRequest(DATAPATH)
    read.xid = xid
    return read


def buckets(change: model.GroupMod) -> list[Any]:
    return [
        PARSER.OFPBucket(
            bucket.weight,
            bucket.watch_port,
            ofproto_v1_3.OFPG_ANY,
            [PARSER.OFPActionOutput(action.port) for action in bucket.actions],
        )
        for bucket in change.buckets()
    ]


@given(ports, st.binary(max_size=100))
def test_packets_in_are_read(port: int, frame: bytes) -> None:
    assert read_packet_in(model.packet_in(port, frame, cookie=3)) == (port, frame)


@given(cookies, st.integers(0, 3), st.sampled_from(["10.0.0.3", "fd00::3"]))
def test_rules_that_expire_are_named_and_others_that_go_are_not(cookie: int, reason: int, ip: str) -> None:
    match = PARSER.OFPMatch(**{"eth_type": eth_type_of(ip), f"ipv{ip_version(ip)}_dst": ip})
    match.serialize(packed := bytearray(), 0)
    body = struct.pack("!QHBBIIHHQQ", cookie, 100, reason, 4, 301, 0, 300, 0, 0, 0) + packed
    whole = struct.pack("!BBHI", 4, 11, 8 + len(body), 0) + body
    assert (osken(whole).cookie, osken(whole).reason) == (cookie, reason)
    assert read_expired(whole) == (ip if reason == ofproto_v1_3.OFPRR_IDLE_TIMEOUT else None)


def test_refusals_name_the_rule() -> None:
    whole = encode(InstallRules(1, (RULE,), 5), 0)
    refusal = read_refusal(model.error(5, model.ErrorReason.TABLE_FULL, whole))
    assert (refusal.type, refusal.code, refusal.cookie) == (5, 1, RULE.cookie)
    other = read_refusal(model.error(5, model.ErrorReason.TABLE_FULL, encode(RemoveGroup(1, 7), 0)))
    assert other.cookie is None


@given(st.binary(max_size=80))
def test_what_is_no_message_is_malformed(data: bytes) -> None:
    for read in (read_expired, read_packet_in, read_refusal):
        with contextlib.suppress(Malformed):
            read(data)


def test_osken_asks_the_same() -> None:
    ofp = ofproto_v1_3
    requests = (
        PARSER.OFPFlowStatsRequest(DATAPATH, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY),
        PARSER.OFPGroupDescStatsRequest(DATAPATH, 0),
        PARSER.OFPMeterFeaturesStatsRequest(DATAPATH, 0),
        PARSER.OFPMeterConfigStatsRequest(DATAPATH, 0, ofp.OFPM_ALL),
    )
    assert reading_back().requests == written(*requests)


def written(*requests: Any) -> bytes:
    """Return messages of os-ken as bytes, numbered from 1 on."""
    data = bytearray()
    for xid, request in enumerate(requests, 1):
        request.set_xid(xid)
        request.serialize()
        data += request.buf
    return bytes(data)


FOREIGN_MATCHES = (
    {"eth_src": ("0a:00:00:00:00:00", "ff:00:00:00:00:00"), "vlan_vid": 0x1001, "vlan_pcp": 3},
    {"eth_type": 0x0800, "ipv4_src": ("10.0.0.0", "255.0.0.0")},
    {"tunnel_id": 7},
)
SEND = PARSER.OFPActionOutput(3)
FOREIGN_ACTIONS: tuple[list[Any], ...] = (
    [PARSER.OFPActionPushVlan(), SEND],
    [PARSER.OFPActionDecNwTtl(), SEND],
    [SEND, SEND],
    [PARSER.OFPActionSetField(ipv4_dst="10.0.0.1"), SEND],
    [PARSER.NXActionRegMove("eth_src", "eth_dst", 8), SEND],
    [PARSER.NXActionRegLoad(7, "eth_dst", 0), SEND],
    [PARSER.NXActionResubmitTable(table_id=6), SEND],
    [],
)


def apply(actions: list[Any], kind: int = ofproto_v1_3.OFPIT_APPLY_ACTIONS) -> Any:
    return PARSER.OFPInstructionActions(kind, actions)


FOREIGN_RULES = [
    *[(PARSER.OFPMatch(**fields), [apply([SEND])], 0) for fields in FOREIGN_MATCHES],
    *[(PARSER.OFPMatch(), [apply(actions)], 0) for actions in FOREIGN_ACTIONS],
    (PARSER.OFPMatch(), [apply([SEND], ofproto_v1_3.OFPIT_WRITE_ACTIONS)], 0),
    (PARSER.OFPMatch(), [PARSER.OFPInstructionMeter(3)], 0),
    (PARSER.OFPMatch(), [apply([SEND]), PARSER.OFPInstructionGotoTable(3)], 0),
    (PARSER.OFPMatch(), [apply([SEND])], 60),
]


def described(cookie: int, match: Any, instructions: list[Any], hard_s: int) -> bytes:
    """Return a rule as flow statistics have it."""
    tail = bytearray()
    match.serialize(tail, 0)
    for instruction in instructions:
        instruction.serialize(tail, len(tail))
    return struct.pack("!HBxIIHHHH4xQQQ", 48 + len(tail), 1, 0, 0, 9, 5, hard_s, 0, cookie, 0, 0) + tail


def test_rules_and_groups_of_others_are_named_and_ours_beside_them_are_read() -> None:
    """os-ken writes what others might install."""
    flows = described(77, PARSER.OFPMatch(), [apply([SEND])], 0)
    flows += b"".join(described(cookie, *rule) for cookie, rule in enumerate(FOREIGN_RULES))
    groups = b""
    bucket = bytearray()
    PARSER.OFPBucket(1, 2, 3, [SEND]).serialize(bucket, 0)
    for number, kind in enumerate((ofproto_v1_3.OFPGT_ALL, ofproto_v1_3.OFPGT_SELECT)):
        groups += struct.pack("!HBxI", 8 + len(bucket), kind, number) + bucket
    reading = reading_back()
    reading.take(1, multipart(model.Multipart.FLOW, 1, flows))
    reading.take(2, multipart(model.Multipart.GROUP_DESCRIPTION, 2, groups))
    reading.refused(3)
    reading.refused(4)
    installed = reading.result()
    assert installed is not None
    assert installed.rules == (Rule(1, 9, Match(), Output(3), 77, 5),)
    assert installed.foreign_cookies == set(range(len(FOREIGN_RULES)))
    assert installed.groups == (Group(1, (Bucket(1, Output(3)),)),)
    assert installed.foreign_groups == {0}
    assert installed.meters is None


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (1, bytes(56)),
        (1, b"\0\x40" + bytes(46) + b"\0\1\0\4" + bytes(12)),
        (7, bytes(8)),
        (7, b"\0\x18\1\0" + bytes(20)),
        (10, b"\0\x18\0\6" + bytes(20)),
    ],
)
def test_a_part_without_a_length_is_malformed(kind: int, body: bytes) -> None:
    transaction = {1: 1, 7: 2, 10: 4}[kind]
    with pytest.raises(Malformed, match="part of 0 bytes"):
        reading_back().take(transaction, multipart(kind, transaction, body))


@pytest.mark.parametrize("statistics", [9, 6, 3, 0xFFFF])
def test_statistics_that_nobody_asked_for_are_not_read(statistics: int) -> None:
    with pytest.raises(Malformed, match="not asked for"):
        reading_back().take(1, multipart(statistics, 1, bytes(99)))


@given(st.integers(1, 4), st.binary(max_size=200))
def test_what_is_no_answer_is_malformed(transaction: int, body: bytes) -> None:
    kind = {1: 1, 2: 7, 3: 11, 4: 10}[transaction]
    with contextlib.suppress(Malformed):
        reading_back().take(transaction, multipart(kind, transaction, body))
