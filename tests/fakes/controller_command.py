"""`mstcp-controller` as a process of its own, for tests with model switches."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from benchmarks.controller.process import Controller, controller
from switch.model import Fleet
from tests.fakes.model_network import fleet_of
from topologies.model import Network

PATIENCE_S = 30.0

PATIENT_DISCOVERY = ("--probe-interval", "1", "--silence", "10")
"""No link is taken for lost because the machine is busy."""


@contextlib.asynccontextmanager
async def controlled(
    network: Network, folder: Path, *options: str, prepare: Callable[[Fleet], None] | None = None
) -> AsyncIterator[tuple[Controller, Fleet]]:
    """Start a controller and the model switches of a network, and wait until all is ready.

    With `prepare`, which is given the switches before they connect, nothing is waited for.
    """
    topology = folder / "network.json"
    topology.write_text(network.model_dump_json())
    async with (
        controller(str(topology), folder / "controller.log", *PATIENT_DISCOVERY, *options) as running,
    ):
        fleet = fleet_of(network, running.openflow)
        if prepare is not None:
            prepare(fleet)
        async with fleet:
            if prepare is None:
                await running.ready()
            yield running, fleet
