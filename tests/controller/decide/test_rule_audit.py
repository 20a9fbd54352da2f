"""Rules that vanish, rules that nobody sent, rules that are refused: noticed, repaired and told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import topologies
from controller.api.schema import parse
from controller.model.events import FlowRequested, MessagesRefused, SwitchDisconnected
from controller.model.rules import TABLE_DEFAULT, TABLE_PINNED, Match, Output, Rule, port_group_number
from controller.model.settings import Settings
from switch.model import Fleet
from switch.model.openflow import Kind
from tests.fakes.controller_command import controlled
from tests.fakes.openflow_table import ControlledNetwork
from tests.fakes.requests import WITH_PORTS as REQUEST
from tests.fakes.rule_table import FakeTable
from tests.fakes.waiting import until

BUTTERFLY = topologies.load("butterfly")


@pytest.fixture
def net() -> ControlledNetwork:
    net = ControlledNetwork.brought_up(BUTTERFLY)
    net.request(**REQUEST)
    net.let_run(3.0)
    return net


def repairs(net: ControlledNetwork) -> list[dict[str, Any]]:
    reports, net.reports = net.reports, []
    return [dict(each.data) for each in reports if each.kind is not None and each.kind == "rules_repaired"]


def without_flows(table: FakeTable) -> None:
    table.rules = {
        key: rule for key, rule in table.rules.items() if rule.table != TABLE_PINNED or rule.priority == 0
    }


def without_one_route(table: FakeTable) -> None:
    key = next(key for key in table.rules if key[0] == TABLE_DEFAULT)
    del table.rules[key]


def without_a_group(table: FakeTable) -> None:
    table.remove_group(port_group_number(min(number & 0xFFFF for number in table.groups)))


def with_a_strange_rule(table: FakeTable) -> None:
    rule = Rule(TABLE_PINNED, 999, Match(eth_type=0x0800), Output(1), 77)
    table.rules[rule.key] = rule


@pytest.mark.parametrize(
    "damage", [FakeTable.clear, without_flows, without_one_route, without_a_group, with_a_strange_rule]
)
def test_what_a_switch_lost_it_gets_back_within_seconds(net: ControlledNetwork, damage: Any) -> None:
    table = net.switches.tables[BUTTERFLY.datapath_id("S0")]
    before = dict(table.rules), dict(table.groups)
    assert repairs(net) == []
    damage(table)
    assert (table.rules, table.groups) != before
    net.let_run(3.0)
    assert (table.rules, table.groups) == before
    (repair,) = repairs(net)
    assert repair["switch"] == "S0"
    assert repair["missing"] + repair["extra"] > 0
    installed = len(net.switches.installed)
    net.let_run(30.0)
    assert repairs(net) == []
    assert len(net.switches.installed) == installed, "nothing is sent to who has all"


def test_rules_that_are_on_their_way_are_left_alone() -> None:
    """A flow waits for a switch that confirms nothing, while another that it leads through loses a route."""
    net = ControlledNetwork.brought_up(BUTTERFLY, Settings(confirm_timeout_s=60.0))
    net.let_run(2.0)
    net.silent = frozenset({"S0"})
    other = parse({**REQUEST, "source_ports": [50001], "rate_bps": 1e5})
    net.handle(FlowRequested(9, other))
    table = net.switches.tables[BUTTERFLY.datapath_id("S4")]
    before = set(table.rules.values())
    without_one_route(table)
    net.let_run(10.0)
    assert set(table.rules.values()) == before
    assert len(repairs(net)) == 1


def test_a_switch_that_loses_its_rules_again_and_again_is_repaired_ever_less_often(
    net: ControlledNetwork,
) -> None:
    table = net.switches.tables[BUTTERFLY.datapath_id("S0")]
    for _ in range(600):
        table.clear()
        net.pass_time(0.1)
    assert 3 <= len(repairs(net)) <= 8


async def test_rules_that_were_refused_are_tried_again(tmp_path: Path) -> None:
    """A table that is full when the switch connects: a fault, not ready; with room again all rules come."""

    def prepare(fleet: Fleet) -> None:
        fleet.switches["S2"].tables.max_rules = 6

    async with controlled(BUTTERFLY, tmp_path, prepare=prepare) as (running, fleet):
        tables = fleet.switches["S2"].tables

        async def health() -> dict[str, Any]:
            answer: dict[str, Any] = await running.get("/v1/health")
            return answer

        while not (seen := await health())["faults"]:
            await asyncio.sleep(0.02)
        assert "S2 refused the rules" in seen["faults"][0]
        assert not seen["ready"]
        tables.max_rules = 1000
        await running.ready()
        assert (await health())["faults"] == []
    assert (tmp_path / "controller.log").read_text().count("refused") <= 2


async def test_messages_that_are_refused_are_a_fault_and_one_line(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet):
        fleet.switches["S2"].faults.refused_kinds = frozenset({Kind.PACKET_OUT})
        fleet.switches["S3"].faults.refused_kinds = frozenset({Kind.BARRIER_REQUEST})
        fleet.disconnect("S3")

        async def faults() -> str:
            return " ".join((await running.get("/v1/health"))["faults"])

        while "S2 refuses messages" not in (said := await faults()) or "S3 refused" not in said:
            await asyncio.sleep(0.05)
        assert (await running.get("/v1/health"))["status"] == "degraded"
        await asyncio.sleep(2.0)
    text = (tmp_path / "controller.log").read_text()
    assert text.count("S2 refuses messages") == 1
    assert text.count("S3 refused") <= 3


async def test_rules_that_vanish_from_a_switch_come_back(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet):
        switch = fleet.switches["S0"]
        before = {rule.change.cookie for rule in switch.tables.rules()}
        switch.tables.clear()
        await until(lambda: {rule.change.cookie for rule in switch.tables.rules()} >= before, "all rules")
        assert (await running.get("/v1/health"))["status"] == "ok"


def test_a_refusal_of_a_switch_that_has_left_is_no_fault(net: ControlledNetwork) -> None:
    datapath_id = BUTTERFLY.datapath_id("S2")
    for event in (SwitchDisconnected(datapath_id), MessagesRefused(datapath_id, "too late", 1)):
        net.handle(event)
    assert not any("refuses messages" in fault for fault in net.snapshot().health.faults)
