"""What rules have counted: asked as bytes, read from what a model switch answers, told to who looks."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from controller.compile.pinned import pinned_rule
from controller.errors import NotFound
from controller.model.counters import RuleCount
from controller.model.events import InstalledRead, SwitchDisconnected, TimePassed, ViewRequested
from controller.model.installed import Installed
from controller.model.messages import InstallRules, Message, ReadInstalled, Reply
from controller.model.requests import ViewName
from controller.model.rules import Match, Output, Rule, RuleKey, TcpConnection, flow_cookie
from controller.model.views import RulesView
from controller.openflow.encoding import encode
from controller.openflow.readback import Readback
from switch.model import ModelSwitch
from switch.model import openflow as model
from tests.fakes.openflow_table import ControlledNetwork

RULES = (
    pinned_rule(TcpConnection("10.0.0.1", "10.0.0.2", 4000, 80), Output(2), flow_cookie(7)),
    Rule(3, 150, Match(eth_type=0x800, source_mac="0a:50:50:00:00:07"), Output(3), 5),
    Rule(2, 250, Match(destination_mac="1a:20:00:00:00:00/ff:f0:00:00:00:00"), Output(3, shift=4), 7),
    Rule(5, 100, Match(0x800, destination_ip="10.0.0.9", destination_mac="1a:00:00:00:00:00"), Output(3), 7),
    Rule(0, 200, Match(eth_type=0x806, in_port=3), Output(3), 6),
    Rule(2, 100, Match(eth_type=0x800, destination_ip="10.0.0.9"), Output(1), 8),
    Rule(0, 0, Match(), Output(1), 9),
)
PACKET = {0: b"\0\0\0\x03", 5: b"\x08\x06"}


def read(switch: ModelSwitch) -> Installed:
    switch.meters = {}
    reading = Readback(count(5).__next__)
    messages = list(model.take_messages(bytearray(switch.receive(reading.requests))))
    outcomes = [reading.take(xid, whole) for _, xid, whole in messages]
    assert outcomes == [False] * (len(messages) - 1) + [True]
    installed = reading.result()
    assert installed is not None
    return installed


def test_every_kind_of_rule_is_read_with_what_it_has_counted() -> None:
    switch = ModelSwitch(1, frozenset({1, 2, 3}))
    switch.receive(encode(InstallRules(1, RULES, 9), 0))
    switch.carry(3, PACKET, packets=4, size_bytes=60)
    counted = {RuleKey(0, 200, RULES[4].match): RuleCount(4, 240)}
    keys = [rule.key for rule in RULES]
    assert read(switch).counts == {key: RuleCount(0, 0) for key in keys} | counted


def test_thousands_of_rules_come_in_many_messages() -> None:
    switch = ModelSwitch(1, frozenset({1}))
    connections = [TcpConnection("10.0.0.1", "10.0.0.2", port, 80) for port in range(1, 3001)]
    entries = tuple(pinned_rule(connection, Output(1), flow_cookie(3)) for connection in connections)
    switch.receive(encode(InstallRules(1, entries, 9), 0))
    assert len(read(switch).counts) == 3000


def look(net: ControlledNetwork, token: int, switch: str = "S0") -> list[Message]:
    return net.core.handle(ViewRequested(token, ViewName.RULES, switch), net.now)


def asked(messages: list[Message]) -> list[int]:
    return [message.datapath_id for message in messages if isinstance(message, ReadInstalled)]


def counts_of(messages: list[Message]) -> dict[int, set[int | None]]:
    """Return the packets of the rules in each answer, by token."""
    answers = [message for message in messages if isinstance(message, Reply)]
    views = [(answer.token, answer.result) for answer in answers]
    return {token: {r.packets for r in view.rules} for token, view in views if isinstance(view, RulesView)}


def counted(net: ControlledNetwork, datapath_id: int, packets: int) -> InstalledRead:
    table = net.switches.tables[datapath_id]
    counts = {rule.key: RuleCount(packets, 60 * packets) for rule in table.rules.values()}
    return InstalledRead(datapath_id, replace(table.installed(), counts=counts))


def test_clients_who_look_at_the_same_time_share_one_question(net: ControlledNetwork) -> None:
    (datapath_id,) = asked(look(net, 1))
    assert asked(look(net, 2)) == []
    answers = net.core.handle(counted(net, datapath_id, 7), net.now)
    assert counts_of(answers) == {1: {7}, 2: {7}}
    assert counts_of(look(net, 3)) == {3: {7}}, "it is fresh"
    net.pass_time(1.1)
    assert asked(look(net, 4)) == [datapath_id]


def test_a_switch_that_does_not_say_is_not_waited_for(net: ControlledNetwork) -> None:
    (datapath_id,) = asked(look(net, 2))
    due = net.core.next_deadline()
    while due is not None and due <= net.now + 1.5:
        net.now = max(net.now, due)
        answers = counts_of(net.core.handle(TimePassed(), net.now))
        if answers:
            break
        due = net.core.next_deadline()
    assert answers == {2: {None}}
    look(net, 3)
    assert counts_of(net.core.handle(SwitchDisconnected(datapath_id), net.now)) == {3: {None}}


def test_few_switches_are_asked_at_once(net: ControlledNetwork) -> None:
    first = [datapath_id for k in range(6) for datapath_id in asked(look(net, k, f"S{k}"))]
    assert len(first) == 4
    assert len(asked(net.core.handle(counted(net, first[0], 1), net.now))) == 1


def test_an_unknown_switch_is_not_found(net: ControlledNetwork) -> None:
    (answer,) = look(net, 1, "S9")
    assert isinstance(answer, Reply)
    assert isinstance(answer.result, NotFound)
