"""Random faults on a controller and model switches that speak OpenFlow, for as long as you like.

.venv/bin/python -m benchmarks.controller.soak --minutes 30 --seed 1

Links and switches go and return, the controller is killed, switches refuse rules, clients vanish. After each
step no link may be promised more than it has; at the end everything runs out, and no switch may have a rule
of a flow left. Prints one JSON object; the status is 1 if something was wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import topologies
from benchmarks.command_line import command_line
from benchmarks.controller.client import Refused, Session
from benchmarks.controller.process import Controller, controller
from switch.model import Fleet
from switch.model.openflow import ErrorReason, FlowMod, GroupMod
from tests.fakes.model_network import fleet_of

_FLOW_COOKIES = (0x4D53_0002_0000_0000, 0xFFFF_000F_0000_0000)
_LEASE_S = 20.0
_QUIET_S = 30.0
_PUBLISHED = 5e-4
"""Share by which rates given by hand may exceed a link (docs/controller.md)."""


def main() -> int:
    """Parse the command line, soak, and print."""
    parser = command_line(__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topology", default="fat-tree:4:rate_bps=10e6")
    options = parser.parse_args()
    result = asyncio.run(_soak(options.topology, 60 * options.minutes, options.seed))
    print(json.dumps(result))
    return 1 if result["wrong"] else 0


async def _soak(topology: str, duration_s: float, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        soak = _Soak(topology, Path(folder), seed)
        try:
            return await soak.run(duration_s)
        finally:
            await soak.stop()


class _Soak:
    """One run."""

    def __init__(self, topology: str, folder: Path, seed: int) -> None:
        self._topology = topology
        self._folder = folder
        self._draw = random.Random(seed)
        self._network = topologies.load(topology)
        hosts = set(self._network.hosts)
        self._ports = [(a.tail, a.tail_port) for a in self._network.arcs() if not {a.tail, a.head} & hosts]
        self._down: list[tuple[str, int]] = []
        self._running: contextlib.AsyncExitStack | None = None
        self._done: Counter[str] = Counter()
        self._wrong: list[str] = []
        self._flows: list[str] = []
        self._port = 0

    async def run(self, duration_s: float) -> dict[str, Any]:
        await self._start()
        async with fleet_of(self._network, self._controller.openflow) as self._fleet:
            await self._controller.ready()
            self._session = Session(self._controller.grpc)
            steps = [self._request] * 6 + [self._release, self._link, self._switch, self._refuse]
            rare = [self._vanish, self._kill]
            end = time.monotonic() + duration_s
            while time.monotonic() < end:
                step: Callable[[], Awaitable[None]] = self._draw.choice(steps * 4 + rare)
                with contextlib.suppress(Refused):
                    await asyncio.wait_for(step(), 60)
                self._done[step.__name__.strip("_")] += 1
                await self._check_links()
            await self._settle()
            await self._session.close()
        return {**self._done, "rss_mib": self._rss_mib(), "wrong": self._wrong}

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.aclose()

    async def _start(self) -> None:
        self._running = contextlib.AsyncExitStack()
        store = ("--store", str(self._folder / "state.sqlite"), "--lease", str(_LEASE_S))
        log = self._folder / "controller.log"
        self._controller: Controller = await self._running.enter_async_context(
            controller(self._topology, log, *store)
        )

    # Steps

    async def _request(self) -> None:
        source, destination = self._draw.sample(self._network.hosts, 2)
        self._port = self._port % 50000 + 1
        flow = await self._session.request(
            source=source,
            destination=destination,
            destination_port=5001,
            source_ports=[10000 + self._port],
            rate_bps=self._draw.choice([1e5, 1e6, 8e6]),
        )
        self._flows.append(flow.flow_id)

    async def _release(self) -> None:
        if self._flows:
            await self._session.release(self._flows.pop(self._draw.randrange(len(self._flows))))

    async def _link(self) -> None:
        if len(self._down) >= 3 or (self._down and self._draw.random() < 0.5):
            self._fleet.set_port(*self._down.pop(0), up=True)
        else:
            self._down.append(self._draw.choice(self._ports))
            self._fleet.set_port(*self._down[-1], up=False)
        await asyncio.sleep(self._draw.random())

    async def _switch(self) -> None:
        name = self._draw.choice(self._network.switches)
        if self._draw.random() < 0.5:
            self._fleet.switches[name].tables.clear()
        self._fleet.disconnect(name)
        await asyncio.sleep(self._draw.random())

    async def _refuse(self) -> None:
        """A switch refuses some rules of flows, before or after the barrier's reply."""
        faults = self._fleet.switches[self._draw.choice(self._network.switches)].faults
        faults.errors_after_barrier = self._draw.random() < 0.5

        def refuse(change: FlowMod | GroupMod) -> ErrorReason | None:
            cookie, mask = _FLOW_COOKIES
            is_flow = isinstance(change, FlowMod) and change.command == 0 and change.cookie & mask == cookie
            return ErrorReason.TABLE_FULL if is_flow and self._draw.random() < 0.5 else None

        faults.refuse = refuse
        for _ in range(3):
            with contextlib.suppress(Refused):
                await self._request()
        faults.refuse, faults.errors_after_barrier = None, False

    async def _vanish(self) -> None:
        """The client goes away, with requests that are not answered; its flows run out."""
        waiting = [asyncio.ensure_future(self._request()) for _ in range(5)]
        await asyncio.sleep(0.002)
        await self._session.close()
        for request in waiting:
            request.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        self._session = Session(self._controller.grpc)
        self._flows.clear()

    async def _kill(self) -> None:
        assert self._running is not None
        self._controller.process.kill()
        await self._controller.process.wait()
        await self._session.close()
        await self._running.aclose()
        await self._start()
        self._fleet.controllers = [self._controller.openflow]
        self._session = Session(self._controller.grpc)
        await asyncio.sleep(self._draw.random() * 3)

    # Checks

    async def _check_links(self) -> None:
        for link in await self._controller.get("/v1/links"):
            if link["allocated_bps"] > link["capacity_bps"] * (1 + _PUBLISHED):
                self._wrong.append(f"{link['link']} is promised {link['allocated_bps']:g} bit/s")

    async def _settle(self) -> None:
        for port in self._down:
            self._fleet.set_port(*port, up=True)
        end = time.monotonic() + _LEASE_S + _QUIET_S
        while time.monotonic() < end:
            await asyncio.sleep(0.5)
            if not await self._controller.get("/v1/flows") and not self._rules():
                break
        left = await self._controller.get("/v1/flows")
        if left or self._rules():
            self._wrong.append(f"{len(left)} flows and {self._rules()} rules are left at the end")
        health = await self._controller.get("/v1/health")
        if not health["ready"]:
            self._wrong.append(f"it is not ready at the end: {health['faults']}")

    def _rules(self) -> int:
        return sum(len(list(s.tables.rules(*_FLOW_COOKIES))) for s in self._fleet.switches.values())

    def _rss_mib(self) -> float:
        pages = int(Path(f"/proc/{self._controller.process.pid}/statm").read_text().split()[1])
        return pages * 4096 / 2**20

    _fleet: Fleet
    _session: Session


if __name__ == "__main__":
    sys.exit(main())
