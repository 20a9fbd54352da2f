"""What a shared store costs: SQLite, one replica with etcd, and three, over model switches, in one run.

.venv/bin/python -m benchmarks.controller.stores            # 200 switches, 5,000 flows
.venv/bin/python -m benchmarks.controller.stores --quick --json

The controllers of all three run at once, with a fleet of switches and an etcd server (Debian's
`etcd-server`) of their own, on the same machine; requests and chunks of flows go to them in turns. So they
share what else happens there.

- `request_p50_ms`: from a request to its answer, which comes when all rules are confirmed; one at a time;
- `installs_per_s`: 16 requests under way at once, the median chunk;
- `cpu_ms_per_flow`: processor time of all replicas for each of these flows;
- `request_ratio`: one replica's median by SQLite's;
- `installs_ratio`: three replicas' flows a second by one's.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import topologies
from benchmarks.command_line import command_line, show
from benchmarks.controller.client import Session
from benchmarks.controller.load import UNDER_WAY, Load
from benchmarks.controller.process import Controller, controller, leader_of
from benchmarks.controller.sizes import spec_of
from tests.fakes.etcd_servers import EtcdServers
from tests.fakes.model_network import fleet_of

_REPLICAS = {"sqlite": 1, "etcd_one": 1, "etcd_three": 3}
_CHUNKS = 20
_WAITS = 300
_OPTIONS = ("--lease", "600", "--probe-interval", "5", "--silence", "60", "--counter-interval", "0")
"""Nothing but requests takes time."""


class _Store:
    """Controllers with a store, their switches and a client."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.per_s: list[float] = []
        self.waits_ms: list[float] = []

    async def start(self, stack: AsyncExitStack, spec: str, seed: int, folder: Path) -> None:
        """Start all that; it ends with the stack."""
        store = str(folder / "state.sqlite")
        if self.name != "sqlite":
            (folder / self.name).mkdir()
            store = stack.enter_context(EtcdServers(folder / self.name)).store
        self._replicas: list[Controller] = []
        for number in range(_REPLICAS[self.name]):
            log = folder / f"{self.name}{number}.log"
            starting = controller(spec, log, *_OPTIONS, "--store", store)
            self._replicas.append(await stack.enter_async_context(starting))
        network = topologies.load(spec)
        fleet = fleet_of(network, *(each.openflow for each in self._replicas))
        await stack.enter_async_context(fleet)
        leader = self._replicas[0] if self.name == "sqlite" else await leader_of(self._replicas)
        await leader.ready()
        self._load, self._session = Load(network, leader, fleet, 1e6, seed), Session(leader.grpc)
        stack.push_async_callback(self._session.close)
        await self._load.timed(self._session, 100, UNDER_WAY)
        self._before_s = self._cpu_s()

    def _cpu_s(self) -> float:
        return sum(each.cpu_s() for each in self._replicas)

    async def install(self, flows: int) -> None:
        """Ask for a chunk of flows."""
        self.per_s.append(flows / await self._load.timed(self._session, flows, UNDER_WAY))

    async def wait(self) -> None:
        """Ask for one flow."""
        self.waits_ms.append(await self._load.wait_ms(self._session))

    def figures(self, flows: int) -> dict[str, float]:
        """Return what was measured."""
        return {
            f"{self.name}_request_p50_ms": statistics.median(self.waits_ms),
            f"{self.name}_installs_per_s": statistics.median(self.per_s),
            f"{self.name}_cpu_ms_per_flow": 1e3 * (self._cpu_s() - self._before_s) / (flows + _WAITS),
        }


async def _measure(spec: str, flows: int, seed: int, folder: Path) -> dict[str, float]:
    stores = [_Store(name) for name in _REPLICAS]
    async with AsyncExitStack() as stack:
        for store in stores:
            await store.start(stack, spec, seed, folder)
        for _ in range(_CHUNKS):
            for store in stores:
                await store.install(flows // _CHUNKS)
        for _ in range(_WAITS):
            for store in stores:
                await store.wait()
        sqlite, one, three = stores
        result = {name: value for store in stores for name, value in store.figures(flows).items()}
    return result | {
        "request_ratio": statistics.median(one.waits_ms) / statistics.median(sqlite.waits_ms),
        "installs_ratio": statistics.median(three.per_s) / statistics.median(one.per_s),
    }


def main() -> int:
    """Parse the command line, measure, and print."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--quick", action="store_true", help="50 switches, 500 flows")
    parser.add_argument("--flows", type=int, help="5,000 of them, unless this says otherwise")
    parser.add_argument("--switches", type=int, help="200 of them, unless this says otherwise")
    parser.add_argument("--seed", type=int, default=1, help="of the network and of the flows' ends")
    options = parser.parse_args()
    spec = spec_of(options.switches or (50 if options.quick else 200), options.seed, 100e6)
    flows = options.flows or (500 if options.quick else 5000)
    with tempfile.TemporaryDirectory(prefix="stores-") as folder:
        result = asyncio.run(_measure(spec, flows, options.seed, Path(folder)))
    show(result, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
