"""A repetition of the benchmark in a virtual kernel, where other load changes nothing (docs/virtual.md).

In the kernel: `python -m benchmarks.shaped.virtual FILE ARGUMENTS`. The file gets a line for each transfer.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.shaped.kernel_links import KernelLinks
from benchmarks.virtual_kernel import guest_file, lines_of

DEFAULT_CONGESTION_CONTROL = "bbr"
"""Its own would be cubic."""


def boot(words: Sequence[str], seed: int) -> Iterator[tuple[int, str, list[float]]]:
    """Make all transfers in a kernel of their own; yield number of the case, kind and seconds of each.

    Args:
        words: The benchmark's command line.
        seed: Of the kernel's random numbers.

    Raises:
        RunFailed: The kernel did not come to the end.
        RuntimeError: The benchmark in it failed.
    """
    with tempfile.TemporaryDirectory(prefix="shaped-") as name:
        module = ["-m", "benchmarks.shaped.virtual", guest_file("transfers")]
        core = min(os.sched_getaffinity(0))
        yield from lines_of([*module, *words], Path(name), "transfers", seed=seed, core=core)


def main(told: Path, words: Sequence[str]) -> None:
    """Make all transfers once, in the kernel."""
    from benchmarks.shaped.__main__ import cases, parse, transfers

    arguments = parse(words)
    arguments.congestion_control = arguments.congestion_control or DEFAULT_CONGESTION_CONTROL
    numbers = {case: number for number, case in enumerate(cases(arguments))}
    with told.open("a") as file:
        for case, kind, seconds in transfers(KernelLinks(), list(numbers), arguments):
            print(json.dumps([numbers[case], kind, seconds]), file=file, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
