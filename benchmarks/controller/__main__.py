"""The controller under load, over model switches that speak OpenFlow.

.venv/bin/python -m benchmarks.controller            # 200 switches, 5,000 flows: some minutes
.venv/bin/python -m benchmarks.controller --quick --json
.venv/bin/python -m benchmarks.controller --switches 1000 --flows 500
sudo .venv/bin/python -m benchmarks.controller --live   # also on the live butterfly

The controller is `mstcp-controller` itself, in a process of its own; the switches and the clients share
another. Flows of one rate run between random hosts by the default objective. Measured are:

- the first and the last 100 of them, 16 requests under way at once (`installs_per_s_*`);
- what one request waits while no other is under way (`request_*_ms`);
- as many paths again, all asked for at once (`batch_paths_per_s`);
- the link with most flows, filled up with small ones to 1,000 (100 with `--quick`), fails: from then until
  the owner of the last flow on it heard of its new path (`replan_ms`, `replanned_flows`);
- how long the controller took to know all switches and links (`discovery_s`), and to have all its rules
  confirmed (`ready_s`); the most memory it had in use (`peak_memory_mib`);
- how many rules a switch has at the end, on average, that name none of the hosts behind it
  (`core_rules_per_switch`).

Networks are Waxman graphs with a host at each switch; above 500 switches with three links a switch.

Names with `cpu` are processor time: of the controller (`*_cpu_ms`, `controller_cpu_s`), and of this process,
in which clients and switches are (`*_beside_cpu_ms`). They say more on a machine that is shared.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import topologies
from benchmarks.controller.client import Refused, Session
from benchmarks.controller.live import run_in_namespaces
from benchmarks.controller.process import Controller, controller
from benchmarks.controller.sizes import come_up, core_rules_per_switch, peak_memory_mib, spec_of
from mstcp.proto import control_pb2 as pb
from switch.model import Fleet
from tests.fakes.model_network import fleet_of
from topologies.model import Network

_UNDER_WAY = 16
_REPLAN_LIMIT_S = 20.0
_SMALL_BPS = 1e4

Result = dict[str, float | int | None]


class _ProcessorTime:
    """What the controller, and this process, have used since it was made, in ms."""

    def __init__(self, running: Controller) -> None:
        self._running = running
        self._began = running.cpu_s(), time.process_time()

    def used(self, name: str) -> Result:
        cpu_s, beside_s = self._running.cpu_s() - self._began[0], time.process_time() - self._began[1]
        return {f"{name}_cpu_ms": 1e3 * cpu_s, f"{name}_beside_cpu_ms": 1e3 * beside_s}


def main() -> int:
    """Parse the command line, measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="50 switches, 500 flows: under a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--switches", type=int, help="200 of them, unless this says otherwise")
    parser.add_argument("--flows", type=int, help="5,000 of them, unless this says otherwise")
    parser.add_argument("--rate", type=float, default=1e6, help="goodput that each flow asks for, bit/s")
    parser.add_argument("--link-rate", type=float, default=100e6, help="of each link between switches, bit/s")
    parser.add_argument("--seed", type=int, default=1, help="of the network and of the flows' ends")
    parser.add_argument(
        "--live", action="store_true", help="also measure requests on the live butterfly (root)"
    )
    options = parser.parse_args()
    if options.live and os.geteuid() != 0:
        print(
            "benchmarks.controller: --live needs root for its network namespaces: use sudo", file=sys.stderr
        )
        return 2
    switches = options.switches or (50 if options.quick else 200)
    flows = options.flows or (500 if options.quick else 5000)
    network = spec_of(switches, options.seed, options.link_rate)
    result = asyncio.run(_measure(network, flows, options.rate, options.seed))
    if options.live:
        result |= run_in_namespaces(options.quick)
    if options.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:28} {'-' if value is None else format(value, '.4g')}")
    return 0


async def _measure(spec: str, flows: int, rate_bps: float, seed: int) -> Result:
    network = topologies.load(spec)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "controller.log")
        try:
            async with (
                controller(spec, log, "--lease", "600") as running,
                fleet_of(network, running.openflow) as fleet,
            ):
                load = _Load(network, running, fleet, rate_bps, seed)
                return await load.run(flows, on_link=min(1000, flows // 5))
        except BaseException:
            sys.stderr.write("".join(log.read_text().splitlines(keepends=True)[-20:]))
            raise


class _Load:
    """One run."""

    def __init__(
        self, network: Network, running: Controller, fleet: Fleet, rate_bps: float, seed: int
    ) -> None:
        self._network = network
        self._controller = running
        self._fleet = fleet
        self._rate_bps = rate_bps
        self._draw = random.Random(seed)
        self._port = 0
        self._granted: list[pb.Allocation] = []

    async def run(self, flows: int, on_link: int) -> Result:
        gc.disable()  # hundreds of switches are looked through for a quarter of a second each time
        up_after = await come_up(self._controller, time.perf_counter())
        session = Session(self._controller.grpc)
        first = await self._timed(session, 100, _UNDER_WAY)
        await self._timed(session, flows - 200, _UNDER_WAY)
        processor = _ProcessorTime(self._controller)
        last = await self._timed(session, 100, _UNDER_WAY)
        used = processor.used("last_100")
        waits_ms = sorted([await self._wait_ms(session) for _ in range(100)])
        paths = sum(len(flow.streams) for flow in self._granted)
        processor = _ProcessorTime(self._controller)
        batch_s = await self._timed(session, 500, 500)
        used |= processor.used("batch")
        batch_paths = sum(len(flow.streams) for flow in self._granted) - paths
        replan_ms, replanned = await self._fail_busiest_link(session, on_link, used)
        await session.close()
        return {
            "installs_per_s_first_100": 100 / first,
            "installs_per_s_last_100": 100 / last,
            "batch_paths_per_s": batch_paths / batch_s,
            "replan_ms": replan_ms,
            "replanned_flows": replanned,
            "request_p50_ms": statistics.median(waits_ms),
            "request_p99_ms": waits_ms[98],
            **up_after,
            "core_rules_per_switch": core_rules_per_switch(self._network, self._fleet.switches),
            "peak_memory_mib": peak_memory_mib(self._controller),
            "switches": len(self._network.switches),
            "links": len(self._network.links),
            "flows": len(self._granted),
            "controller_cpu_s": self._controller.cpu_s(),
            **used,
        }

    def _request(self, ends: Sequence[str]) -> dict[str, Any]:
        source, destination = ends or self._draw.sample(self._network.hosts, 2)
        self._port += 1
        return {
            "source": source,
            "destination": destination,
            "destination_port": 1024 + self._port % 60000,
            "source_ports": [10000 + self._port % 50000],
            "rate_bps": self._rate_bps,
        }

    async def _timed(
        self,
        session: Session,
        count: int,
        under_way: int,
        fields: dict[str, Any] | None = None,
        ends: Sequence[str] = (),
    ) -> float:
        """Request `count` flows, `under_way` at once; returns how long it took."""
        limit = asyncio.Semaphore(under_way)

        async def one() -> None:
            async with limit:
                self._granted.append(await session.request(**self._request(ends) | (fields or {})))

        started = time.perf_counter()
        outcomes = await asyncio.gather(*(one() for _ in range(count)), return_exceptions=True)
        took_s = time.perf_counter() - started
        unexpected = [o for o in outcomes if isinstance(o, BaseException) and not isinstance(o, Refused)]
        if unexpected:
            raise unexpected[0]
        return took_s

    async def _wait_ms(self, session: Session) -> float:
        started = time.perf_counter()
        self._granted.append(await session.request(**self._request(())))
        return 1e3 * (time.perf_counter() - started)

    async def _fail_busiest_link(
        self, session: Session, on_link: int, used: Result
    ) -> tuple[float | None, int]:
        """Let the link that most flows use fail; returns (ms until all are told of new paths, how many)."""
        link, flow_ids = self._busiest_link()
        ends = tuple(self._host_at(switch) for switch in link)
        missing = on_link - len(flow_ids)
        if missing > 0:
            await self._timed(session, missing, _UNDER_WAY, {"rate_bps": _SMALL_BPS}, ends)
            flow_ids = self._flows_on(link)
        port = next(arc.tail_port for arc in self._network.arcs() if (arc.tail, arc.head) == link)
        session.changed_at.clear()
        session.ended.clear()
        processor = _ProcessorTime(self._controller)
        started = time.perf_counter()
        self._fleet.set_port(link[0], port, up=False)
        while time.perf_counter() - started < _REPLAN_LIMIT_S:
            told = flow_ids & session.changed_at.keys()
            if told | (flow_ids & set(session.ended)) == flow_ids:
                used |= processor.used("replan")
                last = max((session.changed_at[flow_id] for flow_id in told), default=started)
                return 1e3 * (last - started), len(told)
            await asyncio.sleep(0.005)
        return None, len(flow_ids & session.changed_at.keys())

    def _host_at(self, switch: str) -> str:
        hosts = set(self._network.hosts)
        return next(arc.tail for arc in self._network.arcs() if arc.head == switch and arc.tail in hosts)

    def _flows_on(self, link: tuple[str, str]) -> set[str]:
        return {f.flow_id for f in self._granted if any(link in _steps(s.path) for s in f.streams)}

    def _busiest_link(self) -> tuple[tuple[str, str], set[str]]:
        users: dict[tuple[str, str], set[str]] = {}
        for flow in self._granted:
            for stream in flow.streams:
                for step in _steps(stream.path):
                    users.setdefault(step, set()).add(flow.flow_id)
        counts = Counter({step: len(flow_ids) for step, flow_ids in users.items()})
        (busiest, _), *_ = counts.most_common(1)
        return busiest, users[busiest]


def _steps(path: Sequence[str]) -> list[tuple[str, str]]:
    """Return the links between switches along a path, each with its ends in order of their names."""
    return [(min(a, b), max(a, b)) for a, b in pairwise(path[1:-1])]


if __name__ == "__main__":
    sys.exit(main())
