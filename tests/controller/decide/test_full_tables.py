"""A switch without room for rules: remembered and said; only its own hosts' flows need room there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topologies
from benchmarks.controller.client import Refused, Session
from controller.model.faults import FaultKind
from tests.fakes.controller_command import controlled
from tests.fakes.openflow_table import ControlledNetwork

PARALLEL = topologies.load("parallel2")
REQUEST: dict[str, Any] = {"packet_bytes": 590, "rate_bps": 1e5}


async def test_a_full_switch_is_not_asked_again_and_the_core_needs_no_room(tmp_path: Path) -> None:
    async with controlled(PARALLEL, tmp_path) as (running, fleet):
        session = Session(running.grpc)
        first = await session.request(**REQUEST, source="A1", destination="B1", destination_port=5000)
        for name in ("M1", "M2"):
            fleet.switches[name].tables.max_rules = len(fleet.switches[name].tables)
        await session.request(**REQUEST, source="A1", destination="B1", destination_port=5001)
        assert (await running.get("/v1/health"))["faults"] == [], "a flow has no rules on its way"
        switch = fleet.switches["R"]
        switch.tables.max_rules = len(switch.tables)
        with pytest.raises(Refused, match="R refused the rules"):
            await session.request(**REQUEST, source="A1", destination="B1", destination_port=5002)
        asked = switch.barriers
        for port in range(5003, 5006):
            with pytest.raises(Refused, match="R has no room for more rules; ask again later"):
                await session.request(**REQUEST, source="A1", destination="B1", destination_port=port)
        assert switch.barriers == asked, "it is not asked again"
        (fault,) = (await running.get("/v1/health"))["faults"]
        assert "R has no room for more rules" in fault
        await session.release(first.flow_id)
        assert (await running.get("/v1/health"))["faults"] == []
        await session.request(**REQUEST, source="A1", destination="B1", destination_port=5007)
        await session.close()
    assert (tmp_path / "controller.log").read_text().count("no room") >= 1


@pytest.mark.parametrize("options", [{}, {"streams": 1}, {"splitting": "packets"}, {"objective": "fair"}])
def test_flows_of_hosts_at_a_full_switch_are_refused_at_once_for_a_while(options: dict[str, Any]) -> None:
    net = ControlledNetwork.brought_up(PARALLEL)
    request = REQUEST | {"source": "A1", "destination": "B1", "destination_port": 5000} | options
    for switch in ("M1", "R"):
        net.core._state.faults.add(switch, FaultKind.TABLE_FULL, f"{switch} is full.", net.now + 30)
    installed = len(net.switches.installed)
    with pytest.raises(Exception, match="R has no room for more rules; ask again later"):
        net.request(**request)
    assert len(net.switches.installed) == installed
    net.pass_time(31)
    assert net.request(**request).rate_bps == 1e5
