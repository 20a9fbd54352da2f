"""`mstcp-controller` as a process of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.controller.process import ROOT, Controller, controller
from switch.model import Fleet
from tests.fakes.model_network import fleet_of
from tests.fakes.waiting import TIMEOUT_S
from topologies.model import Network

FREE_PORTS = tuple(word for name in ("openflow", "rest", "grpc") for word in (f"--{name}", "127.0.0.1:0"))
"""Each service takes one."""

ALONE = ("--topology", "butterfly", "--store", "none", *FREE_PORTS)
"""A controller that keeps nothing, of a network without switches."""

PATIENT_DISCOVERY = ("--probe-interval", "1", "--silence", "10")
"""No link is taken for lost because the machine is busy."""


@contextlib.contextmanager
def started(
    log: Path, *options: str, before: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start a controller, and stop it; yields its process, and what it says once it serves.

    `before` are words before the command.
    """
    command = [*before, sys.executable, "-m", "controller.cli", *options]
    with log.open("w") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        yield process, json.loads(line)
    finally:
        process.terminate()
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 0


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
