"""The real controller as a process of its own, and what it is asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 120.0
_STOPPING_S = 60.0


@dataclass
class Controller:
    """A controller that runs."""

    process: asyncio.subprocess.Process
    openflow: tuple[str, int]
    rest: str
    grpc: str

    async def get(self, path: str) -> Any:
        """Return what REST answers (RuntimeError: it is a refusal)."""
        async with httpx.AsyncClient(base_url=f"http://{self.rest}", timeout=_TIMEOUT_S) as client:
            answer = await client.get(path)
        if answer.is_error:
            raise RuntimeError(f"the controller answers GET {path} with {answer.status_code}: {answer.text}")
        return answer.json()

    async def ready(self) -> None:
        """Wait until all switches, links and default routes are there.

        Raises:
            RuntimeError: that takes too long; or it does not answer at all.
        """
        await self._healthy(lambda health: bool(health["ready"]))

    async def discovered(self) -> None:
        """Wait until all switches and links are there (RuntimeError: as `ready`)."""
        await self._healthy(
            lambda health: not health["links_down"] and all(each["connected"] for each in health["switches"])
        )

    async def _healthy(self, is_enough: Callable[[dict[str, Any]], bool]) -> None:
        end = time.monotonic() + _TIMEOUT_S
        while not is_enough(await self.get("/v1/health")):
            if time.monotonic() > end:
                await self.get("/readyz")  # is refused, with what is missing
                raise RuntimeError(f"the network is not there after {_TIMEOUT_S:g} s")
            await asyncio.sleep(0.05)

    def cpu_s(self) -> float:
        """Return the processor time that its threads have used (Linux counts it in nanoseconds)."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


async def leader_of(replicas: Sequence[Controller]) -> Controller:
    """Wait for a replica that leads (RuntimeError: that takes too long)."""
    end = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < end:
        for each in replicas:
            if (await each.get("/v1/leader"))["standing"] == "leader":
                return each
        await asyncio.sleep(0.02)
    raise RuntimeError(f"no replica leads after {_TIMEOUT_S:g} s")


@contextlib.asynccontextmanager
async def controller(topology: str, log: Path, *options: str) -> AsyncIterator[Controller]:
    """Start `mstcp-controller` on free ports; end it afterwards.

    Raises:
        RuntimeError: it did not start, or did not stop.
    """
    addresses = [word for name in ("openflow", "rest", "grpc") for word in (f"--{name}", "127.0.0.1:0")]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "controller.cli", "--topology", topology, *addresses),
            *(() if "--store" in options else ("--store", "none")),
            *options,
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError(f"the controller did not start: {log.read_text()}")
        ready = json.loads(line)
        host, port = ready["openflow"][0].split(":")
        yield Controller(process, (host, int(port)), ready["rest"][0], ready["grpc"][0])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOPPING_S)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            raise RuntimeError(f"the controller did not stop within {_STOPPING_S:g} s of SIGTERM") from None
