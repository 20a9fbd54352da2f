"""One simulation in a process of its own: a description on standard input, its results on standard output.

A process for each run tells its memory, can be ended at once, and imports little.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import netsim_native as sim

from experiments.engines.sim import traces
from experiments.engines.sim.endless import EndlessCalls
from experiments.engines.sim.methods import load
from experiments.engines.sim.traces import TraceFiles, TraceNotWritten, to_parquet
from experiments.errors import reason_of

REFUSED = 2
"""Exit status for a run that was not made or not kept; the reason is on standard output."""


def main() -> int:
    """Run the description; returns the exit status.

    Arguments: none, or a folder for traces and their formats (`csv,pcap,parquet`).
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with _take_output() as answers:  # closed here: what an exception refers to is not flushed at the exit
        return _answer(answers)


def _answer(answers: TextIO) -> int:
    description = sys.stdin.read()
    started = time.perf_counter()
    try:
        results = _traced(description, *sys.argv[1:]) if sys.argv[1:] else simulate(description)
    except (OSError, ModuleNotFoundError) as error:
        answers.write(f"its traces cannot be written: {reason_of(error)}")
        return REFUSED
    except (TraceNotWritten, OwnMethodFailed) as error:
        answers.write(reason_of(error))
        return REFUSED
    except sim.InvalidDescription as error:
        answers.write(": ".join(filter(None, map(str, error.args))))
        return REFUSED
    wall_s = time.perf_counter() - started
    cost = {"wall_s": wall_s, "peak_rss_bytes": peak_rss_bytes()}
    answers.write(json.dumps(cost) + "\n" + results)
    return 0


def _take_output() -> TextIO:
    """Return standard output, and have what methods of one's own print go to standard error instead."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


class OwnMethodFailed(Exception):
    """A method of one's own raised an exception, returned nonsense, or does not return."""


def simulate(description: str, trace: Callable[[str, bytes], object] | None = None) -> str:
    """Make a run, with methods of one's own if the description names some.

    Raises:
        InvalidDescription: it is none.
        OwnMethodFailed: a method of one's own raised something, did not return, or not what it has to.
        TraceNotWritten: `trace` could not write.
    """
    try:
        with EndlessCalls(except_in=traces.__file__):  # a disk may be slow
            return sim.run(description, trace, load)
    except (sim.InvalidDescription, TraceNotWritten):
        raise
    except BaseException as error:  # also SystemExit and KeyboardInterrupt, which a method may raise
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename != __file__]
        if not own:  # what a method returned or left behind
            raise OwnMethodFailed(reason_of(error)) from error
        where = f"{own[-1].filename}, line {own[-1].lineno}, in {own[-1].name}"
        raise OwnMethodFailed(
            ": ".join(filter(None, [f"{type(error).__name__} in {where}", str(error)]))
        ) from error


def _traced(description: str, folder: str, formats: str) -> str:
    with TraceFiles(Path(folder)) as files:
        results = simulate(description, files)
    if "parquet" in formats.split(","):
        to_parquet(Path(folder), keep_csv="csv" in formats.split(","))
    return results


def peak_rss_bytes() -> int:
    """Return the most memory that this process has held.

    `getrusage` would count that of the parent at the fork too.
    """
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
