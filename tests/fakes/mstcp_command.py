"""The `mstcp` command as a process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator

from mstcp.proto.generate import ROOT


class Command:
    """An `mstcp` command that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def address(self) -> str:
        """Return the address that it says it listens on."""
        assert self.process.stdout is not None
        line = (await asyncio.wait_for(self.process.stdout.readline(), 60)).decode()
        assert line.startswith("listening on "), line
        return line.split()[2].rstrip(",")

    async def end(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        if self.process.returncode is None and number:
            self.process.send_signal(number)
        out, err = await asyncio.wait_for(self.process.communicate(), 60)
        assert self.process.returncode is not None
        return self.process.returncode, out.decode(), err.decode()


@contextlib.asynccontextmanager
async def mstcp_command(*arguments: str, **environment: str) -> AsyncIterator[Command]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "mstcp.tools.cli",
        *arguments,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    command = Command(process)
    try:
        yield command
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def result_of(*arguments: str) -> tuple[int, str, str]:
    """Run a command to its end; return its status and what it printed."""
    async with mstcp_command(*arguments) as command:
        return await command.end(0)


async def ended(command: Command) -> None:
    """End a proxy as Ctrl-C does, and see that it says nothing."""
    result = await command.end()
    assert result == (130, "", ""), result
