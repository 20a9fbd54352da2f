"""Clients' load on a controller: flows between random hosts, and a link that fails under many of them."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from benchmarks.controller.client import Refused, Session
from benchmarks.controller.process import Controller
from benchmarks.controller.sizes import come_up, core_rules_per_switch
from benchmarks.peak_memory import peak_memory_mib
from mstcp.proto import control_pb2 as pb
from switch.model import Fleet
from topologies.model import Network

__all__ = ["CONCURRENT_REQUESTS", "Load", "Result"]

CONCURRENT_REQUESTS = 16
"""Requests at once."""

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


class Load:
    """Flows of one rate between random hosts, by the default objective."""

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
        """Ask for flows, and let the link with most of them fail; returns all figures."""
        gc.disable()  # hundreds of switches are looked through for a quarter of a second each time
        up_after = await come_up(self._controller, time.perf_counter())
        session = Session(self._controller.grpc)
        first = await self.timed(session, 100, CONCURRENT_REQUESTS)
        await self.timed(session, flows - 200, CONCURRENT_REQUESTS)
        processor = _ProcessorTime(self._controller)
        last = await self.timed(session, 100, CONCURRENT_REQUESTS)
        used = processor.used("last_100")
        waits_ms = sorted([await self.wait_ms(session) for _ in range(100)])
        paths = sum(len(flow.streams) for flow in self._granted)
        processor = _ProcessorTime(self._controller)
        batch_s = await self.timed(session, 500, 500)
        used |= processor.used("batch")
        batch_paths = sum(len(flow.streams) for flow in self._granted) - paths
        replanned = await self._fail_busiest_link(session, on_link, used)
        await session.close()
        return {
            "installs_per_s_first_100": 100 / first,
            "installs_per_s_last_100": 100 / last,
            "batch_paths_per_s": batch_paths / batch_s,
            **replanned,
            "request_p50_ms": statistics.median(waits_ms),
            "request_p99_ms": waits_ms[98],
            **up_after,
            "core_rules_per_switch": core_rules_per_switch(self._network, self._fleet.switches),
            "peak_memory_mib": peak_memory_mib(self._controller.process.pid),
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

    async def timed(
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

    async def wait_ms(self, session: Session) -> float:
        """Request one flow; returns how long it took."""
        started = time.perf_counter()
        self._granted.append(await session.request(**self._request(())))
        return 1e3 * (time.perf_counter() - started)

    async def _fail_busiest_link(self, session: Session, on_link: int, used: Result) -> Result:
        """Let the link that most flows use fail; returns how many have new paths, and after how long.

        That is until the switches had confirmed the last rules for it, and until all owners were told.
        """
        link, flow_ids = self._busiest_link()
        ends = tuple(self._host_at(switch) for switch in link)
        missing = on_link - len(flow_ids)
        if missing > 0:
            await self.timed(session, missing, CONCURRENT_REQUESTS, {"rate_bps": _SMALL_BPS}, ends)
            flow_ids = self._flows_on(link)
        port = next(arc.tail_port for arc in self._network.arcs() if (arc.tail, arc.head) == link)
        session.changed_at.clear()
        session.ended.clear()
        processor = _ProcessorTime(self._controller)
        started = time.perf_counter()
        confirmations, confirmed_at = 0, started
        self._fleet.set_port(link[0], port, up=False)
        while (now := time.perf_counter()) - started < _REPLAN_LIMIT_S:
            before, confirmations = confirmations, sum(of.barriers for of in self._fleet.switches.values())
            confirmed_at = confirmed_at if confirmations == before else now
            told = flow_ids & session.changed_at.keys()
            if told | (flow_ids & set(session.ended)) == flow_ids:
                used |= processor.used("replan")
                last = max((session.changed_at[flow_id] for flow_id in told), default=started)
                return {
                    "replan_confirmed_ms": 1e3 * (confirmed_at - started),
                    "replan_ms": 1e3 * (last - started),
                    "replanned_flows": len(told),
                }
            await asyncio.sleep(0.001)
        return {"replan_ms": None, "replanned_flows": len(flow_ids & session.changed_at.keys())}

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
