"""Keeps the machine's processors busy while something is measured."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

# Ends with its parent, however that ends.
_LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


def add_busy(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how many there are for each processor."""
    text = "beside N computing processes for each processor (default %(default)s)"
    parser.add_argument("--busy", type=int, choices=range(100), default=0, metavar="N", help=text)


@contextlib.contextmanager
def occupied(per_processor: int) -> Iterator[None]:
    """Run this many processes for each processor that compute and never wait; 0: none."""
    count = per_processor * len(os.sched_getaffinity(0))
    loops: list[subprocess.Popen[bytes]] = []
    try:
        loops.extend(subprocess.Popen([sys.executable, "-S", "-c", _LOOP]) for _ in range(count))
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()
