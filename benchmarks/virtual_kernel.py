"""Benchmarks in a virtual kernel, where other load changes nothing (docs/virtual.md)."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from experiments.places.virtual.bytecode import compile_all
from experiments.places.virtual.machine import Machine, Order, guest_path, guest_python

Item = TypeVar("Item")
Row = TypeVar("Row")


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how many kernels run at once."""
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="kernels at once")


def in_kernels(
    items: Sequence[Item], jobs: int, boot: Callable[[Sequence[Item]], Sequence[Row]]
) -> list[Row]:
    """Share items among kernels; return the rows of all.

    Args:
        items: What is to be run.
        jobs: How many kernels run at once.
        boot: Runs items in a kernel, and returns their rows.

    Raises:
        RunFailed, RuntimeError: A kernel did not come to its end.
    """
    jobs = max(1, jobs)
    parts = [part for number in range(jobs) if (part := items[number::jobs])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return [row for rows in pool.map(boot, parts) for row in rows]


def guest_file(name: str) -> str:
    """Return the path in the kernel of a file of the folder that `lines_of` is given."""
    return str(guest_path("told") / name)


def lines_of(words: Sequence[str], folder: Path, told: str, *, seed: int) -> list[Any]:
    """Run Python in a kernel of its own; return the lines of JSON that it has appended to a file.

    Args:
        words: What Python is called with.
        folder: Is seen there, and can be written.
        told: Name of the file in it that gets a line for each result; it grows as long as all is well.
        seed: Of the kernel's random numbers.

    Raises:
        RunFailed: The kernel did not come to the end.
        RuntimeError: The program in it failed.
    """
    compile_all()
    results, console = folder / told, folder / "console.log"
    results.touch()
    order = Order(argv=[guest_python(), *words], seed=seed, console=console, writable={"told": folder})
    heard_bytes = 0

    def look() -> bool:
        nonlocal heard_bytes
        before, heard_bytes = heard_bytes, results.stat().st_size
        return heard_bytes > before

    with Machine(order) as machine:
        status = machine.wait(look)
    if status:
        said = console.read_text(errors="replace")
        raise RuntimeError(f"in the virtual kernel: status {status}\n{said}")
    return [json.loads(line) for line in results.read_text().splitlines()]
