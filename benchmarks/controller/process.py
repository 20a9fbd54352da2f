"""The real controller as a process of its own, and what it is asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 120.0


@dataclass
class Controller:
    """A controller that runs."""

    process: asyncio.subprocess.Process
    openflow: tuple[str, int]
    rest: str
    grpc: str

    async def get(self, path: str) -> Any:
        """Return what REST answers."""
        async with httpx.AsyncClient(base_url=f"http://{self.rest}", timeout=_PATIENCE_S) as client:
            return (await client.get(path)).json()

    async def ready(self) -> None:
        """Wait until all switches, links and default routes are there."""

        async def is_ready() -> None:
            while not (await self.get("/v1/health"))["ready"]:
                await asyncio.sleep(0.05)

        await asyncio.wait_for(is_ready(), _PATIENCE_S)

    def cpu_s(self) -> float:
        """Return the processor time it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100


@contextlib.asynccontextmanager
async def controller(topology: str, log: Path, *options: str) -> AsyncIterator[Controller]:
    """Start `mstcp-controller` on free ports; end it afterwards."""
    addresses = [word for name in ("openflow", "rest", "grpc") for word in (f"--{name}", "127.0.0.1:0")]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "controller.cli", "--topology", topology, *addresses, *options),
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
        await process.wait()
