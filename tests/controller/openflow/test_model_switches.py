"""The whole controller and model switches that speak OpenFlow to it, with what may go wrong."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

import topologies
from benchmarks.controller.client import Refused, Session
from benchmarks.controller.process import controller
from controller.model.rules import port_group_number
from switch.model import Fleet, ModelSwitch
from tests.fakes.controller_command import PATIENT_DISCOVERY, controlled
from tests.fakes.model_network import fleet_of
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.waiting import until

FLOW_COOKIES = (0x4D53_0002_0000_0000, 0xFFFF_000F_0000_0000)
BUTTERFLY = topologies.load("butterfly")
SMALL = {"source": "T0", "destination": "T2", "rate_bps": 1e5, "packet_bytes": 590}
OTHER = {"source": "T1", "destination": "T3", "rate_bps": 1e5, "packet_bytes": 590}


async def test_a_flow_is_installed_and_removed(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet), Session(running.grpc) as session:
        flow = await session.request(**REQUEST, source_ports=[40001, 40002])
        assert len(flow.streams) == 2
        rules = {name: len(list(s.tables.rules(*FLOW_COOKIES))) for name, s in fleet.switches.items()}
        assert rules == {name: 2 if name in ("S0", "S4") else 0 for name in fleet.switches}
        await session.release(flow.flow_id)
        await rules_gone(fleet)


async def rules_gone(fleet: Fleet) -> None:
    """Wait until no switch has rules of flows."""
    each = fleet.switches.values()
    await until(lambda: not any(list(s.tables.rules(*FLOW_COOKIES)) for s in each), "the flow's rules to go")


async def test_what_hosts_send_to_the_controller_is_metered_where_switches_can(tmp_path: Path) -> None:
    """Each port towards a host has a meter; after a restart, one that has another rate is set again."""
    store = ("--store", str(tmp_path / "state.sqlite"))
    topology = str(tmp_path / "network.json")
    Path(topology).write_text(BUTTERFLY.model_dump_json())
    hosts = BUTTERFLY.hosts
    ports = {arc.tail: arc.tail_port for arc in BUTTERFLY.arcs() if arc.head in hosts}
    async with controller(topology, tmp_path / "first.log", *PATIENT_DISCOVERY, *store) as first:
        fleet = fleet_of(BUTTERFLY, first.openflow)
        for name in ("S0", "S2", "S4"):
            fleet.switches[name].meters = {}
        async with fleet:
            await first.ready()
            for name, switch in fleet.switches.items():
                metered = [ports[name]] if name in ("S0", "S4") else []
                assert sorted(switch.meters or ()) == metered
                assert metered_rules(switch) == metered
            await protected(fleet)
            before = installed_by(fleet)
            first.process.kill()
            await first.process.wait()
            number, meters = ports["S0"], fleet.switches["S0"].meters
            assert meters is not None
            right = meters[number]
            meters[number] = right[:6] + (7).to_bytes(4, "big") + right[10:]  # packets a second
            async with controller(topology, tmp_path / "second.log", *PATIENT_DISCOVERY, *store) as second:
                fleet.controllers = [second.openflow]
                await second.ready()
                assert meters == {number: right}
                assert installed_by(fleet) == before


def metered_rules(switch: ModelSwitch) -> list[int]:
    """Return the ports of the rules with a meter."""
    changes = [rule.change for rule in switch.tables.rules()]
    fields = [dict(change.match) for change in changes if change.instruction_bytes[:2] == b"\0\6"]
    return sorted(int.from_bytes(each[0], "big") for each in fields)


async def test_a_switch_that_stops_reading_harms_no_other(tmp_path: Path) -> None:
    """Its own requests are refused in time; the others do not wait for it."""
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet), Session(running.grpc) as session:
        fleet.switches["S4"].faults.stalled = True
        unlucky = [
            asyncio.ensure_future(
                session.request(**{**REQUEST, "destination_port": 6000 + number, "rate_bps": 1e5})
            )
            for number in range(20)
        ]
        served = [await session.request(**OTHER, destination_port=7000 + number) for number in range(20)]
        assert not any(request.done() for request in unlucky), "they wait for S4, and the others did not"
        outcomes = await asyncio.gather(*unlucky, return_exceptions=True)
        assert all(isinstance(outcome, Refused) for outcome in outcomes)
        assert len(served) == 20


async def test_rules_that_are_refused_are_taken_back(tmp_path: Path) -> None:
    """Two errors for one barrier, before or after its reply, are one refusal and no fault of the network."""
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet), Session(running.grpc) as session:
        await protected(fleet)  # else a bypass, which comes last, may find S4 full
        for late in (False, True):
            switch = fleet.switches["S4"]
            switch.faults.errors_after_barrier = late
            switch.tables.max_rules = len(switch.tables)
            request = REQUEST | {"source_ports": [40001, 40002]}
            with pytest.raises(Refused, match="S4 refused") if not late else contextlib.suppress(Refused):
                flow = await session.request(**request)
                # The error came after the last confirmation.
                await until(lambda flow=flow: flow.flow_id in session.ended, "the owner to be told")  # type: ignore[misc]
            assert (await running.get("/v1/health"))["ready"]
            assert await running.get("/v1/flows") == []
            await rules_gone(fleet)


def installed_by(fleet: Fleet) -> dict[str, set[tuple[int, int]]]:
    """Return which change installed which rule: one that is sent again is another."""
    return {
        name: {(rule.change.cookie, rule.installed_by) for rule in switch.tables.rules()}
        for name, switch in fleet.switches.items()
    }


async def protected(fleet: Fleet) -> None:
    """Wait until each of the butterfly's 14 ports towards switches has a bypass: they come last."""
    groups = [(switch, port_group_number(port)) for switch in fleet.switches.values() for port in range(1, 8)]

    def with_bypass() -> int:
        present = (switch.tables.groups.get(number) for switch, number in groups)
        return sum(group is not None and len(group.buckets()) == 2 for group in present)

    await until(lambda: with_bypass() == 14, "all bypasses")


def promised(links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return links without what is measured, which comes when it comes."""
    measured = ("measured_bps", "measured_utilisation", "unrequested_bps")
    return [{name: value for name, value in link.items() if name not in measured} for link in links]


async def test_a_controller_that_is_killed_and_restarted_touches_no_rule(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "state.sqlite"))
    async with controlled(BUTTERFLY, tmp_path, *store) as (first, fleet):
        session = Session(first.grpc)
        flow = await session.request(**REQUEST, source_ports=[40001, 40002])
        links = promised(await first.get("/v1/links"))
        await protected(fleet)
        before = None
        while before != (before := installed_by(fleet)):
            await asyncio.sleep(1.0)  # bypasses may follow the flow
        first.process.kill()
        await first.process.wait()
        await session.close()
        async with controller(
            str(tmp_path / "network.json"), tmp_path / "second.log", *PATIENT_DISCOVERY, *store
        ) as second:
            fleet.controllers = [second.openflow]
            await second.ready()
            async with Session(second.grpc) as session:
                await session.renew([flow.flow_id])
                (kept,) = await second.get("/v1/flows")
                assert kept["flow_id"] == flow.flow_id
                assert promised(await second.get("/v1/links")) == links
                assert installed_by(fleet) == before, "no rule was sent again, so counters go on"
                await session.release(flow.flow_id)
                await rules_gone(fleet)


async def test_switches_that_lost_their_rules_get_them_back(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet), Session(running.grpc) as session:
        await session.request(**REQUEST, source_ports=[40001, 40002])
        await protected(fleet)
        before = {name: set(rules) for name, rules in cookies(fleet).items()}
        for name, switch in fleet.switches.items():
            fleet.disconnect(name)
            switch.tables.clear()
        await until(lambda: cookies(fleet) == before, "all rules to be back")
        await running.ready()


def cookies(fleet: Fleet) -> dict[str, set[int]]:
    return {name: {r.change.cookie for r in s.tables.rules()} for name, s in fleet.switches.items()}


@pytest.mark.parametrize("on_stop", ["keep", "remove"])
async def test_what_becomes_of_the_rules_when_the_controller_stops(tmp_path: Path, on_stop: str) -> None:
    async with (
        controlled(BUTTERFLY, tmp_path, "--on-stop", on_stop) as (running, fleet),
        Session(running.grpc) as session,
    ):
        await session.request(**REQUEST, source_ports=[40001, 40002])
        await protected(fleet)
        fleet.switches["S4"].faults.swallow_barriers = True
        half = asyncio.ensure_future(session.request(**SMALL, destination_port=6000))
        full = sum(len(switch.tables) for switch in fleet.switches.values())
        await until(lambda: sum(len(s.tables) for s in fleet.switches.values()) > full, "half a flow")
        running.process.terminate()
        await running.process.wait()
        half.cancel()
        await session.close()
        expected = full if on_stop == "keep" else 0
        await until(lambda: sum(len(s.tables) for s in fleet.switches.values()) == expected, "the rest to go")


async def test_a_second_switch_with_a_known_datapath_id_evicts_nobody(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet), Session(running.grpc) as session:
        await session.request(**REQUEST, source_ports=[40001, 40002])
        await protected(fleet)
        before = installed_by(fleet)
        impostor = ModelSwitch(BUTTERFLY.datapath_id("S4"), frozenset({1, 2, 3}), "impostor")
        async with Fleet({"impostor": impostor}, {}, [running.openflow]):
            await until(lambda: impostor.is_ready(0), "the impostor to connect")
            await until(lambda: not impostor.is_ready(0), "the impostor to be sent away")
            assert len(impostor.tables) == 0
            assert installed_by(fleet) == before
            await session.request(**SMALL, destination_port=6000)
        assert (await running.get("/v1/health"))["ready"]


async def test_a_flood_of_one_host_keeps_no_other_waiting(tmp_path: Path) -> None:
    """16,000 ARP packets: 200 are looked at and then 100 a second; requests and other ports go on."""
    async with controlled(BUTTERFLY, tmp_path) as (running, fleet), Session(running.grpc) as session:
        frame = bytes.fromhex("ffffffffffff020000000001080600010800060400010200000000010a000001000000000000")
        for number in range(16_000):
            fleet.frame_arrived("S0", 1, frame + number.to_bytes(4, "big"))
        await session.request(**REQUEST, source_ports=[40001, 40002])
        assert (await running.get("/v1/health"))["ready"]
        await session.close()
