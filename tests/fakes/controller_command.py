"""`mstcp-controller` as a process of its own, for tests with model switches."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from benchmarks.controller.process import Controller, controller
from switch.model import Fleet
from tests.fakes.model_network import fleet_of
from topologies.model import Network

PATIENCE_S = 30.0


@contextlib.asynccontextmanager
async def controlled(
    network: Network, folder: Path, *options: str
) -> AsyncIterator[tuple[Controller, Fleet]]:
    """Start a controller and the model switches of a network, and wait until all is ready."""
    topology = folder / "network.json"
    topology.write_text(network.model_dump_json())
    async with (
        controller(str(topology), folder / "controller.log", *options) as running,
        fleet_of(network, running.openflow) as fleet,
    ):
        await running.ready()
        yield running, fleet


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; fail with what was waited for."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain for {PATIENCE_S:g} s: {what}"
        await asyncio.sleep(0.01)
