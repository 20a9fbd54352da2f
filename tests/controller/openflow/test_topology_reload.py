"""The topology file is read again by SIGHUP, while model switches are connected."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import topologies
from benchmarks.controller.client import Session
from benchmarks.controller.process import Controller, controller
from switch.model import Fleet
from tests.fakes.controller_command import PATIENT_DISCOVERY
from tests.fakes.model_network import fleet_of
from tests.fakes.waiting import until
from topologies.model import Link, Network, Node

FLOW_COOKIES = (0x4D53_0002_0000_0000, 0xFFFF_000F_0000_0000)
BUTTERFLY = topologies.load("butterfly")
WIDER = Network(
    name=BUTTERFLY.name,
    nodes=(*BUTTERFLY.nodes, Node(name="S9", kind="switch"), Node(name="T9", kind="host")),
    links=(
        *BUTTERFLY.links,
        Link(ends=("S9", "S2"), rate_bps=5e6, delay_us=500),
        Link(ends=("T9", "S9"), rate_bps=1e7, delay_us=100),
    ),
)
REQUEST = {"source": "T0", "destination_port": 5001, "packet_bytes": 590}


def flow_rules(fleet: Fleet) -> dict[str, set[tuple[Any, int]]]:
    """Return the rules of flows, with the numbers of the changes that installed them."""
    return {
        name: {(rule.change.match, rule.installed_by) for rule in switch.tables.rules(*FLOW_COOKIES)}
        for name, switch in fleet.switches.items()
    }


async def reload(running: Controller, file: Path, text: str, log: Path, said: str) -> None:
    """Let the controller read another file, and wait until its log has said so once more."""
    before = log.read_text().count(said)
    file.write_text(text)
    running.process.send_signal(signal.SIGHUP)
    await until(lambda: log.read_text().count(said) > before, said)


async def test_a_new_switch_and_host_are_served_and_a_running_flow_is_not_touched(tmp_path: Path) -> None:
    file, log = tmp_path / "network.json", tmp_path / "controller.log"
    file.write_text(BUTTERFLY.model_dump_json())
    async with (
        controller(str(file), log, *PATIENT_DISCOVERY) as running,
        fleet_of(WIDER, running.openflow) as fleet,
    ):
        await running.ready()
        session = Session(running.grpc)
        flow = await session.request(**REQUEST, destination="T2", source_ports=[40001, 40002], rate_bps=8.5e6)
        before = flow_rules(fleet)
        await reload(running, file, WIDER.model_dump_json(), log, "the configuration was applied")
        await running.ready()
        assert flow_rules(fleet) == before
        new = await session.request(**REQUEST, destination="T9", source_ports=[40003], rate_bps=1e5)
        assert new.streams[0].path[-2:] == ["S9", "T9"]
        await session.renew([flow.flow_id])
        assert session.ended == []
        for wrong, why in (
            ("{", "is not JSON"),
            (json.dumps({**BUTTERFLY.model_dump(), "links": []}), "network.json"),
            (
                json.dumps({**WIDER.model_dump(mode="json"), "name": "other"}),
                "another network needs a restart",
            ),
        ):
            await reload(running, file, wrong, log, "the configuration is as before")
            assert why in log.read_text().splitlines()[-1]
        assert (await running.get("/v1/health"))["ready"]
        await reload(running, file, BUTTERFLY.model_dump_json(), log, "the configuration was applied")
        await until(lambda: new.flow_id in session.ended, "the flow to the host that is gone to end")
        await until(lambda: flow_rules(fleet) == before, "its rules to go")
        assert not len(fleet.switches["S9"].tables), "a switch that is gone keeps no rule of ours"
        await session.close()
