"""The whole controller and model switches that speak OpenFlow to it, with what may go wrong."""

from __future__ import annotations

from pathlib import Path

import topologies
from benchmarks.controller.client import Session
from tests.fakes.controller_command import controlled, until

FLOW_COOKIES = (0x4D53_0002_0000_0000, 0xFFFF_FFFF_0000_0000)
BUTTERFLY = topologies.load("butterfly")
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
