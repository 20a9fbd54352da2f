"""How many flows a second the controller takes in, over gRPC and over REST.

.venv/bin/python benchmarks/controller_arrivals.py --flows 200

The controller is the real one, with its servers on loopback, but for os-ken: its switches are in memory and
confirm at once. So this is what admission, the optimum, rules, answers and notifications cost, without Open
vSwitch. Clients are a process of their own. Each way begins with an empty network and ends when all flows
run; then they are released. Columns: arrivals a second, what a request waited (ms), and the processor time
that an arrival took in the controller's core and in its process as a whole (ms).
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

Request = dict[str, Any]
WAYS: dict[str, str] = {
    "grpc": "gRPC, one request after the other",
    "grpc-16": "gRPC, 16 under way",
    "rest": "REST, one request after the other",
}


def main() -> int:
    """Parse the command line; measure each way, or be the client of one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", default="fat-tree:4:rate_bps=10e6", help="as topologies.load takes it")
    parser.add_argument("--flows", type=int, default=200)
    parser.add_argument("--rate", type=float, default=2e6, help="goodput that each asks for, bit/s")
    parser.add_argument("--objective", default="fair")
    parser.add_argument("--seed", type=int, default=1, help="of the flows' ends")
    parser.add_argument("--client", nargs=2, metavar=("WAY", "ADDRESS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        way, address = arguments.client
        print(json.dumps(_CLIENTS[way](address, json.load(sys.stdin))))
        return 0
    print("| way | arrivals/s | median | 95 % | core | process |\n|---|---|---|---|---|---|")
    for way, name in WAYS.items():
        row = measure(way, arguments)
        print(f"| {name} | {row[0]:.0f} | " + " | ".join(f"{value:.1f} ms" for value in row[1:]) + " |")
    return 0


def requests(arguments: argparse.Namespace) -> list[Request]:
    """Return flows between random hosts."""
    import topologies

    draw = random.Random(arguments.seed)
    hosts = topologies.load(arguments.network).hosts
    pairs = [draw.sample(hosts, 2) for _ in range(arguments.flows)]
    return [
        {
            "source": source,
            "destination": destination,
            "destination_port": 5001 + number,
            "source_ports": list(range(20000 + 8 * number, 20008 + 8 * number)),
            "rate_bps": arguments.rate,
            "objective": arguments.objective,
        }
        for number, (source, destination) in enumerate(pairs)
    ]


def measure(way: str, arguments: argparse.Namespace) -> tuple[float, float, float, float, float]:
    """Run a controller and a client; returns arrivals/s and in ms median, 95 %, core's and process's CPU."""
    controller = _Controller(arguments.network)
    try:
        address = controller.grpc if way.startswith("grpc") else controller.rest
        core_s, process_s = controller.core_cpu_s(), time.process_time()
        done = subprocess.run(
            [sys.executable, __file__, "--client", way, address],
            input=json.dumps(requests(arguments)),
            capture_output=True,
            text=True,
            check=True,
        )
        core_s, process_s = controller.core_cpu_s() - core_s, time.process_time() - process_s
    finally:
        controller.stop()
    figures = json.loads(done.stdout)
    waits_ms = sorted(1e3 * wait for wait in figures["waits_s"])
    per_flow_ms = 1e3 / len(waits_ms)
    return (
        len(waits_ms) / figures["wall_s"],
        statistics.median(waits_ms),
        waits_ms[int(0.95 * len(waits_ms))],
        core_s * per_flow_ms,
        process_s * per_flow_ms,
    )


class _Controller:
    """The controller with fake switches, and servers on free ports."""

    def __init__(self, spec: str) -> None:
        import topologies
        from controller.address import Address, listen
        from controller.api.rest_common import Api
        from controller.api.servers import ServiceThread
        from controller.api.service import Service
        from controller.core import Core
        from controller.loop import ControllerLoop
        from controller.state.state import Settings
        from tests.fakes.openflow_table import FakeSwitches

        network = topologies.load(spec)
        self._switches = FakeSwitches(network)
        self._loop = ControllerLoop(Core(network, Settings()), self._send, lambda m: service.deliver(m))
        service = Service(self._loop.post)
        listener, bound = listen("--rest", Address("127.0.0.1", 0))
        self._services = ServiceThread(Api(service), [listener], [Address("127.0.0.1", 0)])
        self._loop.start()
        self._services.start()
        for event in self._switches.arrivals():
            self._loop.post(event)
        self.rest, self.grpc = str(bound), str(self._services.grpc_addresses[0])
        (self._thread,) = (each for each in threading.enumerate() if each.name == "controller-core")
        time.sleep(1.0)  # default routes

    def _send(self, message: Any) -> None:
        back = self._switches.carry_out(message)
        if back is not None:
            self._loop.post(back)

    def core_cpu_s(self) -> float:
        """Return the processor time that the core's thread has taken."""
        clock = time.pthread_getcpuclockid(self._thread.ident or 0)
        return time.clock_gettime(clock)

    def stop(self) -> None:
        self._services.stop()
        self._loop.stop()


def _grpc_client(under_way: int) -> Callable[[str, list[Request]], dict[str, Any]]:
    return lambda address, flows: asyncio.run(_by_grpc(address, flows, under_way))


async def _by_grpc(address: str, flows: list[Request], under_way: int) -> dict[str, Any]:
    from mstcp.control import ControllerClient

    waits_s: list[float] = []
    gate = asyncio.Semaphore(under_way)
    async with ControllerClient(address, timeout_s=60.0) as client:

        async def ask(flow: Request) -> None:
            async with gate:
                before = time.perf_counter()
                await client.request(**flow)
                waits_s.append(time.perf_counter() - before)

        started = time.perf_counter()
        await asyncio.gather(*map(ask, flows))
        return {"wall_s": time.perf_counter() - started, "waits_s": waits_s}


def _by_rest(address: str, flows: list[Request]) -> dict[str, Any]:
    waits_s: list[float] = []
    connection = http.client.HTTPConnection(address)
    started = time.perf_counter()
    for flow in flows:
        before = time.perf_counter()
        connection.request("POST", "/v1/flows", json.dumps(flow), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 201:
            raise SystemExit(body.decode())
        waits_s.append(time.perf_counter() - before)
    return {"wall_s": time.perf_counter() - started, "waits_s": waits_s}


_CLIENTS: dict[str, Callable[[str, list[Request]], dict[str, Any]]] = {
    "grpc": _grpc_client(1),
    "grpc-16": _grpc_client(16),
    "rest": _by_rest,
}


if __name__ == "__main__":
    sys.exit(main())
