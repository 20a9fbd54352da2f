"""The whole controller and model switches that speak OpenFlow to it, with what may go wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import topologies
from benchmarks.controller.client import Refused, Session
from tests.fakes.controller_command import controlled, until

FLOW_COOKIES = (0x4D53_0002_0000_0000, 0xFFFF_FFFF_0000_0000)
BUTTERFLY = topologies.load("butterfly")
SMALL = {"source": "T0", "destination": "T2", "rate_bps": 1e5, "packet_bytes": 590}
OTHER = {"source": "T1", "destination": "T3", "rate_bps": 1e5, "packet_bytes": 590}
REQUEST = {
    "source": "T0",
    "destination": "T2",
    "destination_port": 5001,
    "rate_bps": 8.5e6,
    "packet_bytes": 590,
}


async def test_a_flow_is_installed_and_removed(tmp_path: Path) -> None:
    async with controlled(BUTTERFLY, tmp_path) as (controller, fleet):
        session = Session(controller.grpc)
        flow = await session.request(**REQUEST, source_ports=[40001, 40002])
        assert len(flow.streams) == 2
        rules = {name: len(list(s.tables.rules(*FLOW_COOKIES))) for name, s in fleet.switches.items()}
        on_paths = [node for stream in flow.streams for node in stream.path[1:-1]]
        assert rules == {name: 2 * on_paths.count(name) for name in fleet.switches}
        await session.release(flow.flow_id)
        await until(
            lambda: not any(list(s.tables.rules(*FLOW_COOKIES)) for s in fleet.switches.values()),
            "the flow's rules to go",
        )
        await session.close()


async def test_a_switch_that_stops_reading_harms_no_other(tmp_path: Path) -> None:
    """Its own requests are refused in time; the others do not wait for it."""
    async with controlled(BUTTERFLY, tmp_path) as (controller, fleet):
        session = Session(controller.grpc)
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
        await session.close()


async def test_rules_that_are_refused_are_taken_back(tmp_path: Path) -> None:
    """Two errors for one barrier, before or after its reply, are one refusal and no fault of the network."""
    async with controlled(BUTTERFLY, tmp_path) as (controller, fleet):
        session = Session(controller.grpc)
        for late in (False, True):
            switch = fleet.switches["S4"]
            switch.faults.errors_after_barrier = late
            switch.tables.max_rules = len(switch.tables)
            request = REQUEST | {"source_ports": [40001, 40002]}
            if late:
                flow = await session.request(**request)
                await until(lambda flow=flow: flow.flow_id in session.ended, "the owner to be told")  # type: ignore[misc]
            else:
                with pytest.raises(Refused, match="S4 refused the rules"):
                    await session.request(**request)
            assert (await controller.get("/v1/health"))["ready"]
            assert await controller.get("/v1/flows") == []
            await until(
                lambda: not any(list(s.tables.rules(*FLOW_COOKIES)) for s in fleet.switches.values()),
                "the flow's rules to go",
            )
        await session.close()
