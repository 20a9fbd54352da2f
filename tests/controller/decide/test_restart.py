"""A controller that restarts, and switches that come back: what is right is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from controller.api.schema import parse
from controller.decide.rule_difference import rule_difference
from controller.errors import InvalidRequest
from controller.model.events import FlowRequested, LeaseRenewed, SwitchDisconnected
from controller.model.installed import Installed
from controller.model.messages import InstallRules, LeaseResult
from controller.model.rules import GroupChange, Match, Meter, Output, Rule, flow_meter_number
from controller.model.views import FlowView
from tests.fakes.openflow_table import ControlledNetwork
from tests.fakes.requests import WITH_PORTS as REQUEST
from tests.fakes.rule_table import FakeTable

BUTTERFLY = topologies.load("butterfly")


def rules(net: ControlledNetwork) -> list[set[Any]]:
    return [{*table.rules.values(), *table.groups.values()} for table in net.switches.tables.values()]


def sent(net: ControlledNetwork) -> list[InstallRules]:
    """What was installed since the last time, but for barriers alone."""
    messages, net.switches.installed = net.switches.installed, []
    return [message for message in messages if message.entries or message.wipe]


@pytest.mark.parametrize("splitting", ["streams", "packets", "group"])
def test_after_a_restart_the_flows_are_there_and_no_rule_is_touched(
    net: ControlledNetwork, splitting: str
) -> None:
    ports = [40001, 40002] if splitting == "streams" else [40001]
    net.request(**{**REQUEST, "splitting": splitting, "source_ports": ports})
    before = rules(net)
    sent(net)
    net.restart()
    net.come_back()
    net.pass_time(29)
    assert sent(net) == []
    assert rules(net) == before
    assert len(net.snapshot().flows) == 1
    net.pass_time(2)
    assert rules(net) != before, "nobody has renewed its lease"


def test_the_owner_takes_its_flow_up_again_by_renewing_its_lease(net: ControlledNetwork) -> None:
    flow = net.request(owner="before", **REQUEST)
    net.pass_time(20)
    net.restart()
    net.come_back()
    assert net.snapshot().flows[0] == flow, "the same flow with the same rates, and a whole lease"
    (answer,) = net.handle(LeaseRenewed(1, (flow.flow_id,), "after"))
    assert answer.result == LeaseResult((flow.flow_id,), ())
    net.pass_time(29)
    assert len(net.snapshot().flows) == 1


def test_ports_and_rates_are_taken_still(net: ControlledNetwork) -> None:
    flow = net.request(**REQUEST)
    links = net.snapshot().links
    net.restart()
    net.come_back()
    assert net.snapshot().links == links
    other = net.request(**{**REQUEST, "source_ports": None, "rate_bps": 1e5})
    assert other.flow_id != flow.flow_id
    with pytest.raises(Exception, match="in use"):
        net.request(**REQUEST)


def test_a_flow_that_was_half_installed_is_taken_out(net: ControlledNetwork) -> None:
    clean = rules(net)
    net.silent = frozenset({"S0"})
    net.handle(FlowRequested(1, parse(REQUEST)))
    assert rules(net) != clean
    net.restart()
    net.silent = frozenset()
    net.come_back()
    net.pass_time(0.5)  # the bypasses are found again
    assert rules(net) == clean
    assert net.snapshot().flows == ()


def test_a_released_flow_stays_released(net: ControlledNetwork) -> None:
    clean = rules(net)
    net.release(net.request(**REQUEST).flow_id)
    net.restart()
    net.come_back()
    assert net.snapshot().flows == ()
    assert rules(net) == clean


def test_a_switch_that_comes_back_empty_gets_everything(net: ControlledNetwork) -> None:
    net.request(**REQUEST)
    before = rules(net)
    s2 = BUTTERFLY.datapath_id("S2")
    net.handle(SwitchDisconnected(s2))
    net.switches.tables[s2].clear()
    net.reconnect("S2")
    assert rules(net) == before
    assert net.snapshot().flows[0].lost_links == ()


def test_a_switch_that_lost_its_connection_forwards_on(net: ControlledNetwork) -> None:
    net.request(**REQUEST)
    before = rules(net)
    sent(net)
    net.handle(SwitchDisconnected(BUTTERFLY.datapath_id("S2")))
    net.pass_time(5)
    net.reconnect("S2")
    net.pass_time(1)
    assert rules(net) == before
    assert sent(net) == []
    assert net.snapshot().health.ready


def test_a_switch_that_does_not_come_back_is_given_up(net: ControlledNetwork) -> None:
    net.handle(SwitchDisconnected(BUTTERFLY.datapath_id("S2")))
    assert net.snapshot().health.links_down == ()
    net.pass_time(11)
    assert set(net.snapshot().health.links_down) == {"S2-S3", "S0-S2", "S1-S2"}


def test_after_a_restart_switches_that_never_come_are_given_up(net: ControlledNetwork) -> None:
    net.request(**REQUEST)
    net.restart()
    for name in BUTTERFLY.switches:
        if name != "S2":
            net.reconnect(name)
    assert net.snapshot().health.links_down == ()
    net.pass_time(11)
    assert set(net.snapshot().health.links_down) >= {"S2-S3", "S0-S2", "S1-S2"}


def test_rules_of_others_go(net: ControlledNetwork) -> None:
    clean = rules(net)
    table = net.switches.tables[1]
    table.install(Rule(2, 5, Match(destination_ip="10.9.9.9"), Output(1), cookie=0))
    table.install(Rule(1, 7, Match(source_port=1), Output(1), 0x4D53_0002_0000_0099))
    net.handle(SwitchDisconnected(1))
    net.reconnect(BUTTERFLY.switches[0])
    assert rules(net) == clean


ports = st.integers(1, 3)
few_rules = st.builds(
    Rule,
    table=st.integers(1, 2),
    priority=st.integers(1, 2),
    match=st.builds(Match, destination_port=st.integers(1, 3)),
    action=st.builds(Output, ports),
    cookie=st.integers(1, 3),
    meter=st.sampled_from([None, 7, *map(flow_meter_number, (1, 2))]),
)


def by_key(some: list[Rule]) -> list[Rule]:
    return list({rule.key: rule for rule in some}.values())


def meters_of(some: list[Rule], rate: int) -> list[Meter]:
    return [Meter(number, rate, 1) for number in sorted({rule.meter for rule in some if rule.meter})]


@given(st.lists(few_rules), st.lists(few_rules), st.sets(st.integers(1, 3)))
def test_the_difference_leads_from_anything_to_what_is_wanted(
    has: list[Rule], wanted: list[Rule], foreign: set[int]
) -> None:
    has, wanted = by_key(has), by_key(wanted)
    former, meters = meters_of(has, 5), meters_of(wanted, 10)
    table = FakeTable()
    for meter in former:
        table.install(meter)
    for rule in has:
        table.install(rule)
    installed = Installed(tuple(has), (), frozenset(foreign), meters=tuple(former))
    missing = rule_difference(1, installed, [*meters, *wanted])
    for message in missing.first:
        table.take_away(message)
    kept = set(table.rules.values()) & set(wanted)
    assert not kept & set(missing.entries), "what is right is not sent again"
    for entry in missing.entries:
        assert not isinstance(entry, GroupChange)
        table.install(entry)
    for message in missing.then:
        table.take_away(message)
    assert set(table.rules.values()) == set(wanted)
    assert set(meters) == {meter for meter in table.meters.values() if meter.number != 7 or meter.rate == 10}


def test_a_request_that_is_sent_again_after_a_restart_gets_the_flow_that_it_got(
    net: ControlledNetwork,
) -> None:
    wanted = FlowRequested(1, parse({**REQUEST, "rate_bps": 1e6}), repeated_as=("key", "digest"))
    (first,) = net.handle(wanted)
    net.restart()
    net.come_back()
    (again,) = net.handle(replace(wanted, token=2))
    assert isinstance(first.result, FlowView) and isinstance(again.result, FlowView)
    assert again.result.flow_id == first.result.flow_id
    (other,) = net.handle(replace(wanted, token=3, repeated_as=("key", "of another")))
    assert isinstance(other.result, InvalidRequest)
    net.release(first.result.flow_id)
    (fresh,) = net.handle(replace(wanted, token=4))
    assert isinstance(fresh.result, FlowView) and fresh.result.flow_id != first.result.flow_id
