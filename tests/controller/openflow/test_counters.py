"""Counters as bytes: os-ken asks the same, and what a model switch has counted is what is read."""

from __future__ import annotations

import contextlib
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_protocol, ofproto_v1_3, ofproto_v1_3_parser

from controller.compile.classification import classification
from controller.compile.pinned import pinned_rule
from controller.model.counters import PinnedCount
from controller.model.messages import InstallRules
from controller.model.rules import (
    COOKIE_GROUPS,
    COUNTED_COOKIES,
    TABLE_DEFAULT,
    TABLE_PINNED,
    Bucket,
    Group,
    Match,
    Output,
    Rule,
    TcpConnection,
    ToGroup,
    flow_cookie,
    port_group_number,
    split_group_number,
)
from controller.openflow.counters import CounterReading
from controller.openflow.decoding import Malformed
from controller.openflow.encoding import encode
from controller.openflow.readback import Readback
from switch.model import ModelSwitch
from switch.model import openflow as model

CONNECTION = TcpConnection("10.0.0.1", "10.0.0.2", 40001, 5001)
STAMP = "0a:50:50:00:07:01"
PACKET = {
    5: b"\x08\x00",
    10: b"\x06",
    11: b"\x0a\0\0\x01",
    12: b"\x0a\0\0\x02",
    13: b"\x9c\x41",
    14: b"\x13\x89",
}


def answered(switch: ModelSwitch, pinned: bool = True) -> CounterReading:
    reading = CounterReading(count(1).__next__, pinned, True)
    messages = list(model.take_messages(bytearray(switch.receive(reading.requests))))
    outcomes = [reading.take(xid, whole) for _, xid, whole in messages]
    assert outcomes == [False] * (len(messages) - 1) + [True]
    return reading


def install(switch: ModelSwitch, *entries: Rule | Group) -> None:
    assert switch.receive(encode(InstallRules(1, entries, 9), 0))[1] == model.Kind.BARRIER_REPLY


def test_osken_asks_the_same() -> None:
    datapath = ofproto_protocol.ProtocolDesc(version=ofproto_v1_3.OFP_VERSION)
    parser: Any = ofproto_v1_3_parser
    ports = parser.OFPPortStatsRequest(datapath, 0, ofproto_v1_3.OFPP_ANY)
    everything = ofproto_v1_3.OFPTT_ALL, ofproto_v1_3.OFPP_ANY, ofproto_v1_3.OFPG_ANY
    rules = parser.OFPFlowStatsRequest(datapath, 0, *everything, *COUNTED_COOKIES)
    number = parser.OFPAggregateStatsRequest(datapath, 0, *everything, 0, 0, parser.OFPMatch())
    groups = parser.OFPFlowStatsRequest(datapath, 0, *everything, COOKIE_GROUPS, 2**64 - 1)
    expected = b""
    for xid, request in enumerate((ports, rules, number, groups), 1):
        request.set_xid(xid)
        request.serialize()
        expected += bytes(request.buf)
    assert CounterReading(count(1).__next__, True, True).requests == expected


def test_what_a_switch_has_counted_is_read() -> None:
    switch = ModelSwitch(1, frozenset({1, 2, 3}))
    guarded = Group(port_group_number(2), (Bucket(0, Output(2), watch_port=2),))
    spread = Group(split_group_number(7), (Bucket(1, Output(3)),))
    back = pinned_rule(CONNECTION.reverse, ToGroup(spread.number), flow_cookie(7))
    stamped = Rule(TABLE_PINNED, 150, Match(eth_type=0x800, source_mac=STAMP), Output(3), flow_cookie(8))
    forward = pinned_rule(CONNECTION, ToGroup(guarded.number), flow_cookie(7))
    other = Rule(TABLE_DEFAULT, 100, Match(eth_type=0x800, destination_ip="10.0.0.9"), Output(1), 5)
    install(switch, guarded, spread, forward, back, stamped, other)
    switch.tables.change_rules(_goto_pinned())
    assert switch.carry(1, PACKET, packets=10, size_bytes=590)[0] == 2
    reading = answered(switch)
    assert reading.pinned == {
        CONNECTION: PinnedCount(2, 5900),
        CONNECTION.reverse: PinnedCount(None, 0),
        STAMP: PinnedCount(3, 0),
    }
    assert {port: (c.received_bytes, c.sent_bytes) for port, c in reading.ports.items()} == {
        1: (5900, 0),
        2: (0, 5900),
        3: (0, 0),
    }
    assert (reading.ports[1].received_packets, reading.ports[2].sent_packets) == (10, 10)
    assert reading.messages == 8
    assert answered(switch, pinned=False).pinned == {}


def test_packets_to_groups_are_counted_apart() -> None:
    switch = ModelSwitch(1, frozenset({1, 2}))
    install(switch, *(entry for entry in classification((), False) if isinstance(entry, Rule)))
    for mac in ("ff:ff:ff:ff:ff:ff", "33:33:00:00:00:fb", "0a:00:00:00:00:02"):
        switch.carry(1, PACKET | {3: bytes.fromhex(mac.replace(":", ""))}, packets=5, size_bytes=100)
    assert answered(switch).dropped == 10


def _goto_pinned() -> model.FlowMod:
    goto = b"\0\1\0\x08" + bytes([TABLE_PINNED]) + bytes(3)
    return model.FlowMod(0, 0, 0, 0, 0, 0, 0, (), b"\0\1\0\4\0\0\0\0", goto)


def test_answers_in_many_messages_are_read_whole() -> None:
    switch = ModelSwitch(1, frozenset(range(1, 2000)))
    connections = [TcpConnection("10.0.0.1", "10.0.0.2", port, 5001) for port in range(1, 3001)]
    install(switch, *(pinned_rule(connection, Output(1), flow_cookie(3)) for connection in connections))
    reading = answered(switch)
    assert set(reading.pinned) == set(connections)
    assert set(reading.ports) == set(range(1, 2000))
    assert reading.messages > 6


def test_an_answer_without_an_end_is_given_up() -> None:
    reading = CounterReading(count(1).__next__, False, False)
    endless = model.message(model.Kind.MULTIPART_REPLY, 1, b"\0\4\0\1\0\0\0\0")
    with pytest.raises(Malformed, match="messages"):
        for _ in range(100_000):
            reading.take(1, endless)


@given(
    st.booleans(), st.binary(max_size=200), st.integers(1, 2), st.sampled_from([b"\0\1", b"\0\4", b"\0\2"])
)
def test_what_is_no_answer_is_malformed(of_rules: bool, body: bytes, xid: int, kind: bytes) -> None:
    whole = model.message(model.Kind.MULTIPART_REPLY, xid, kind + bytes(6) + body)
    for answer in (whole, body):
        numbers = count(1).__next__
        reading = Readback(numbers) if of_rules else CounterReading(numbers, True, True)
        with contextlib.suppress(Malformed):
            reading.take(xid, answer)
