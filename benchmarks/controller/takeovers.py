"""Takeovers in a row: three replicas, one etcd server, model switches; they leave everything as it was.

.venv/bin/python -m benchmarks.controller.takeovers               # 1,000 of them: some minutes
.venv/bin/python -m benchmarks.controller.takeovers --takeovers 60 --json

The leader's key is removed from etcd, and every tenth time the leader is told to step down. Printed are

- `rules_changed`: rules and groups that came, went or were sent again to a switch, in all;
- `flows_changed`: flows that came, went or have other paths or rates at the end;
- `records_changed`: records in etcd that came or went, except events;
- `memory_growth_mib`, `files_growth`, `threads_growth`: of the replica that grew most, from a tenth of the
  takeovers on;
- `ready_p50_s`, `ready_max_s`: until the next leader has what all switches have.

The status is 1 if rules, flows or records changed.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx

import topologies
from benchmarks.command_line import command_line, show
from benchmarks.controller.client import Session
from benchmarks.controller.load import CONCURRENT_REQUESTS, Load
from benchmarks.controller.process import Controller, controller, leader_of
from controller.store.etcd import EtcdStore
from controller.store.etcd_client import EtcdAccess, EtcdClient, until
from switch.model import Fleet
from tests.fakes.etcd_servers import EtcdServers
from tests.fakes.model_network import fleet_of

_TOPOLOGY = "fat-tree:4:rate_bps=100e6"
_FLOWS = 50
_MASTER = 2
_TIMEOUT_S = 60.0
_STEP_DOWN_EVERY = 10
_OPTIONS = ("--lease", "6000", "--probe-interval", "1", "--silence", "60", "--counter-interval", "0")

Result = dict[str, float]


class _Replicas:
    """Three of them, their switches, and what all of that has."""

    def __init__(self, replicas: list[Controller], fleet: Fleet, store: EtcdStore) -> None:
        self._replicas, self._fleet, self._store = replicas, fleet, store
        self.waits_s: list[float] = []

    async def take_over(self, steps_down: bool) -> None:
        """Let another epoch begin, and wait until its leader is ready."""
        before = self._generation()
        began = time.monotonic()
        if steps_down:
            async with httpx.AsyncClient() as client:
                place = f"http://{self.leader().rest}/v1/leader/step-down"
                (await client.post(place, follow_redirects=True)).raise_for_status()
        else:
            self._store.depose(before & (1 << 63) - 1, until(began + _TIMEOUT_S))
        while self._generation() == before or not (await self._health())["ready"]:
            if time.monotonic() > began + _TIMEOUT_S:
                raise RuntimeError(f"no leader is ready after {_TIMEOUT_S:g} s: {await self._health()}")
            await asyncio.sleep(0.01)
        self.waits_s.append(time.monotonic() - began)

    async def _health(self) -> dict[str, Any]:
        """Return the health of the present leader: on a busy machine one may lose its lease at once."""
        health: dict[str, Any] = await self.leader().get("/v1/health")
        return health

    def _generation(self) -> int:
        """Return the least generation id that a switch has seen."""
        return min(switch.generation or 0 for switch in self._fleet.switches.values())

    def leader(self) -> Controller:
        """Return the master of the switches."""
        switch = next(iter(self._fleet.switches.values()))
        return next(each for number, each in enumerate(self._replicas) if switch.role(number) == _MASTER)

    def rules(self) -> dict[str, Any]:
        """Return what each switch has, and how often something was sent to it."""
        return {
            name: (switch.flow_mods, {repr(rule.change) for rule in switch.tables.rules()})
            for name, switch in self._fleet.switches.items()
        }

    async def flows(self) -> dict[str, Any]:
        """Return paths and rates by flow."""
        flows = await self.leader().get("/v1/flows")
        return {each["flow_id"]: [(s["path"], s["rate_bps"]) for s in each["streams"]] for each in flows}

    def records(self) -> set[tuple[str, str]]:
        """Return the names of all records in etcd, except events."""
        records = self._store.load()
        return {(kind, key) for kind, of in records.items() for key in of if kind != "event"}

    def sizes(self) -> list[tuple[float, int, int]]:
        """Return memory in MiB, open files and threads of each replica."""
        sizes = []
        for each in self._replicas:
            process = Path(f"/proc/{each.process.pid}")
            pages = int((process / "statm").read_text().split()[1])
            files, threads = (len(list((process / folder).iterdir())) for folder in ("fd", "task"))
            sizes.append((pages * 4096 / 2**20, files, threads))
        return sizes


def _changed(before: dict[str, Any], now: dict[str, Any]) -> int:
    return sum(before.get(name) != now.get(name) for name in before.keys() | now.keys())


async def _measure(takeovers: int, folder: Path) -> Result:
    network = topologies.load(_TOPOLOGY)
    async with AsyncExitStack() as stack:
        etcd = stack.enter_context(EtcdServers(folder))
        starting = (
            controller(_TOPOLOGY, folder / f"{number}.log", *_OPTIONS, "--store", etcd.store)
            for number in range(3)
        )
        running = [await stack.enter_async_context(each) for each in starting]
        fleet = fleet_of(network, *(each.openflow for each in running))
        await stack.enter_async_context(fleet)
        leader = await leader_of(running)
        await leader.ready()
        store = EtcdStore(EtcdClient(EtcdAccess(etcd.endpoints)), f"/mstcp/{network.name}", 2)
        stack.callback(store.close)
        session = Session(leader.grpc)
        await Load(network, leader, fleet, 1e6, seed=1).timed(session, _FLOWS, CONCURRENT_REQUESTS)
        await session.close()
        replicas = _Replicas(running, fleet, store)
        await replicas.take_over(steps_down=False)  # bypasses are where they stay by now
        rules, flows, records = replicas.rules(), await replicas.flows(), replicas.records()
        for number in range(takeovers):
            if number == takeovers // 10:
                sizes = replicas.sizes()
            await replicas.take_over(steps_down=number % _STEP_DOWN_EVERY == _STEP_DOWN_EVERY - 1)
        growth = [
            max(after - before for before, after in zip(befores, afters, strict=True))
            for befores, afters in zip(
                zip(*sizes, strict=True), zip(*replicas.sizes(), strict=True), strict=True
            )
        ]
        return {
            "takeovers": takeovers,
            "rules_changed": sum(
                abs(now[0] - before[0]) + len(now[1] ^ before[1])
                for before, now in zip(rules.values(), replicas.rules().values(), strict=True)
            ),
            "flows_changed": _changed(flows, await replicas.flows()),
            "records_changed": len(records ^ replicas.records()),
            "memory_growth_mib": growth[0],
            "files_growth": growth[1],
            "threads_growth": growth[2],
            "ready_p50_s": statistics.median(replicas.waits_s),
            "ready_max_s": max(replicas.waits_s),
        }


def main() -> int:
    """Parse the command line, measure, and print."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--takeovers", type=int, default=1000, help="how many (default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="takeovers-") as folder:
        result = asyncio.run(_measure(options.takeovers, Path(folder)))
    show(result, options.json)
    return int(any(result[name] for name in ("rules_changed", "flows_changed", "records_changed")))


if __name__ == "__main__":
    sys.exit(main())
