"""From request to installed on the live butterfly: Mininet, Open vSwitch and `mstcp-controller` itself.

In namespaces of their own; needs root. Measured are:

- what one request for two paths waits, each released before the next (`live_request_*_ms`);
- how many small flows a second 50 clients get, each asking again as soon as it is answered
  (`live_installs_per_s`), and the controller's processor time for each (`live_cpu_ms_per_install`).
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import topologies
from benchmarks.controller.client import Session
from benchmarks.controller.process import ROOT, Controller, controller
from switch.ovs import PrivateInstance

NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
_CLIENTS = 50
_TWO_PATHS = {
    "source": "T0",
    "destination": "T2",
    "source_ports": [40001, 40002],
    "rate_bps": 8.5e6,
    "packet_bytes": 590,
}
_SMALL = {"source": "T1", "destination": "T3", "rate_bps": 1e3, "packet_bytes": 590}

Result = dict[str, float]


def run_in_namespaces(quick: bool) -> Result:
    """Run this module in namespaces of its own and return what it measured.

    Raises:
        CalledProcessError: it failed; the reason is on standard error.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [
        *NAMESPACES,
        sys.executable,
        "-m",
        "benchmarks.controller.live",
        *(["--quick"] if quick else []),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


async def _measure(folder: Path, quick: bool) -> Result:
    from topologies.mininet_builder import Emulation

    network = topologies.load("butterfly")
    topology = folder / "network.json"
    topology.write_text(network.model_dump_json())
    options = ("--store", str(folder / "state.sqlite"), "--lease", "600")
    async with controller(str(topology), folder / "controller.log", *options) as running:
        with (
            PrivateInstance(folder / "ovs") as ovs,
            Emulation(network, ovs=ovs, controller=running.openflow, mtu=576),
        ):
            await running.ready()
            waits_ms = await _waits_ms(running, 100 if quick else 1000)
            return {
                "live_request_p50_ms": statistics.median(waits_ms),
                "live_request_p99_ms": sorted(waits_ms)[len(waits_ms) * 99 // 100 - 1],
                **await _together(running, 10 if quick else 40),
            }


async def _waits_ms(running: Controller, count: int) -> list[float]:
    session, waits_ms = Session(running.grpc), []
    for _ in range(count):
        started = time.perf_counter()
        flow = await session.request(destination_port=5001, **_TWO_PATHS)
        waits_ms.append(1e3 * (time.perf_counter() - started))
        assert len(flow.streams) == 2, "the network has no other flow"
        await session.release(flow.flow_id)
    await session.close()
    return waits_ms


async def _together(running: Controller, each: int) -> Result:
    async def client(number: int) -> None:
        session = Session(running.grpc)
        for step in range(each):
            port = 10000 + number * each + step
            await session.request(destination_port=5002, source_ports=[port], **_SMALL)
        await session.close()

    cpu_s, started = running.cpu_s(), time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(_CLIENTS)))
    took_s = time.perf_counter() - started
    installs = _CLIENTS * each
    return {
        "live_installs_per_s": installs / took_s,
        "live_cpu_ms_per_install": 1e3 * (running.cpu_s() - cpu_s) / installs,
    }


if __name__ == "__main__":
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="live-") as name:
        print(json.dumps(asyncio.run(_measure(Path(name), "--quick" in sys.argv[1:]))))
