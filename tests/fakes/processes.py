"""Programs that a test runs beside itself."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.paths import ROOT


@contextlib.asynccontextmanager
async def running(*command: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program, and end it when the block does."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def output_of(*command: str | Path) -> str:
    """Return what a program prints, which has to succeed."""
    async with running(*command) as program:
        out, errors = await asyncio.wait_for(program.communicate(), 120)
    assert program.returncode == 0, errors.decode()
    return out.decode()


async def first_line(program: asyncio.subprocess.Process) -> str:
    """Return what a program that runs says first."""
    assert program.stdout is not None
    return (await asyncio.wait_for(program.stdout.readline(), 20)).decode()


def cargo() -> str:
    """Return the command; skip where it is not installed."""
    found = subprocess.run([ROOT / "scripts" / "find-cargo"], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("cargo is not installed")
    return found.stdout.strip()


def go_build(program: Path, folder: Path, environment: dict[str, str], source: str = ".") -> None:
    """Compile a program in Go; what it imports is compiled once for all runs of the tests."""
    settings = {"GOCACHE": str(ROOT / "target" / "go"), "GOTOOLCHAIN": "local"}
    command = ["go", "build", "-o", str(program), source]
    subprocess.run(command, cwd=folder, env={**environment, **settings}, check=True)
