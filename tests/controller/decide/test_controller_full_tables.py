"""A switch without room for rules: remembered, said, and routed around."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topologies
from benchmarks.controller.client import Refused, Session
from controller.decide.planning import full_switches
from controller.model.faults import FaultKind
from tests.fakes.controller_command import controlled
from tests.fakes.openflow_table import ControlledNetwork

PARALLEL = topologies.load("parallel2")
REQUEST: dict[str, Any] = {"packet_bytes": 590, "rate_bps": 1e5}


async def test_new_flows_are_routed_around_a_full_switch(tmp_path: Path) -> None:
    async with controlled(PARALLEL, tmp_path, "--config", *configuration(tmp_path)) as (running, fleet):
        session = Session(running.grpc)
        first = await session.request(**REQUEST, source="A1", destination="B1", destination_port=5000)
        full = first.streams[0].path[2]
        switch = fleet.switches[full]
        switch.tables.max_rules = len(switch.tables)
        with pytest.raises(Refused, match=f"{full} refused the rules"):
            await session.request(**REQUEST, source="A1", destination="B1", destination_port=5001)
        asked = switch.barriers
        for port in range(5002, 5012):
            flow = await session.request(**REQUEST, source="A1", destination="B1", destination_port=port)
            assert full not in flow.streams[0].path
        assert switch.barriers == asked, "it is not asked again"
        (fault,) = (await running.get("/v1/health"))["faults"]
        assert f"{full} has no room for more rules" in fault
        await session.release(first.flow_id)
        assert (await running.get("/v1/health"))["faults"] == []
        await session.close()
    assert (tmp_path / "controller.log").read_text().count("no room") == 1


def configuration(folder: Path) -> list[str]:
    """Without bypasses, which would find the switch full too."""
    path = folder / "controller.toml"
    path.write_text('topology = "parallel2"\n[routing]\nfast_failover = false\n')
    return [str(path)]


def test_without_a_way_around_a_request_is_refused_at_once() -> None:
    net = ControlledNetwork(PARALLEL)
    net.bring_up()
    request = REQUEST | {"source": "A1", "destination": "B1", "destination_port": 5000}
    for switch in ("M1", "M2"):
        net.core._state.faults.add(switch, FaultKind.TABLE_FULL, f"{switch} is full.", net.now + 30)
    installed = len(net.switches.installed)
    with pytest.raises(Exception, match="the tables of M1, M2 are full, and no path leads around"):
        net.request(**request)
    assert len(net.switches.installed) == installed
    net.pass_time(31)
    assert full_switches(net.core._state) == frozenset()
    assert net.request(**request).rate_bps == 1e5


@pytest.mark.parametrize("options", [{"streams": 1}, {"splitting": "packets"}, {"objective": "fair"}])
def test_all_kinds_of_flows_lead_around(options: dict[str, Any]) -> None:
    net = ControlledNetwork(PARALLEL)
    net.bring_up()
    net.core._state.faults.add("M1", FaultKind.TABLE_FULL, "M1 is full.", net.now + 30)
    flow = net.request(**REQUEST, source="A1", destination="B1", destination_port=5000, **options)
    assert {node for stream in flow.streams for node in stream.path} == {"A1", "L", "M2", "R", "B1"}
