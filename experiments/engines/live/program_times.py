"""How long the programs that packets pass ran, and waited for a processor, by the scheduler's own figures.

A packet that arrives at a source, a switch or a sink lies there until the program gets a processor, and no
link knows of that. Linux counts it for each thread in /proc/PID/task/TID/schedstat: nanoseconds it ran,
nanoseconds it was able to run and waited, and how many times it was given a processor
(Documentation/scheduler/sched-stats.rst).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from experiments.model.results import ProgramTimes


class _Counters(NamedTuple):
    ran_ns: int = 0
    waited_ns: int = 0
    times: int = 0

    def since(self, before: _Counters) -> _Counters:
        return _Counters(*(now - then for now, then in zip(self, before, strict=True)))


class ProgramMeter:
    """What programs ran and waited since it was made: process ids by what a sentence calls them."""

    def __init__(self, programs: Mapping[str, int], proc: Path = Path("/proc")) -> None:
        self._programs = programs
        self._proc = proc
        self._before = {name: self._threads(pid) for name, pid in programs.items()}

    def read(self, duration_s: float) -> list[ProgramTimes]:
        """Return the times of each program in this many seconds; none where the kernel does not count them.

        Of a program's threads the one that wanted to run most counts: packets may pass any of them.
        """
        readings = []
        for name, pid in self._programs.items():
            before = self._before[name]
            passed = [
                after.since(before.get(thread, _Counters())) for thread, after in self._threads(pid).items()
            ]
            most = max(passed, key=lambda each: each.ran_ns + each.waited_ns, default=_Counters())
            if most.times > 0:
                times = ProgramTimes(
                    program=name,
                    ran=most.ran_ns * 1e-9 / duration_s,
                    waited=most.waited_ns * 1e-9 / duration_s,
                    wait_mean_us=most.waited_ns / most.times / 1e3,
                )
                readings.append(times)
        return readings

    def _threads(self, pid: int) -> dict[str, _Counters]:
        counters = {}
        for path in self._proc.glob(f"{pid}/task/*/schedstat"):
            with suppress(OSError):  # a thread that has just ended
                counters[path.parent.name] = _Counters(*map(int, path.read_text().split()))
        return counters
