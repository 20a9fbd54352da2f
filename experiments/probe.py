"""Two seconds of looking at whether this machine could carry a live run now."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

NEEDED_LOOPS_PER_S = 60e6
"""What all cores have to give together, in turns of an empty loop of Python. Two cores that gave 64 million,
beside a little other work, carried scenario 2 of the butterfly with MSTCP: its valid runs kept them busy for
0.89 and 0.91 of the time."""
LATENESS_MAX_S = 2e-3
"""How late one timer in twenty may be: a link is to be late by half of that in one of a hundred packets."""
_WAIT_S, _WORK_S = 1.0, 1.0

_CHILD = """
import sys, time
wait_s, work_s = float(sys.argv[1]), float(sys.argv[2])
late, end = [], time.monotonic() + wait_s
while (before := time.monotonic()) < end:
    time.sleep(0.001)
    late.append(time.monotonic() - before - 0.001)
late.sort()
count, end = 0, time.monotonic() + work_s
while time.monotonic() < end:
    for _ in range(10000):
        pass
    count += 10000
print(late[len(late) * 95 // 100], count / work_s)
"""


@dataclass(frozen=True)
class Probe:
    """What the cores gave, all of them asked at once."""

    loops_per_s: float
    lateness_s: float
    """Of one timer in twenty, on the worst core."""

    @property
    def carries_live_runs(self) -> bool:
        """Whether a live run of the butterfly can be expected to be valid."""
        return self.loops_per_s >= NEEDED_LOOPS_PER_S and self.lateness_s <= LATENESS_MAX_S

    @property
    def text(self) -> str:
        """What was seen, as a sentence."""
        share = self.loops_per_s / NEEDED_LOOPS_PER_S
        return (
            f"its cores give {share:.0%} of the processing that live runs need, and timers are "
            f"{self.lateness_s * 1e3:.1f} ms late"
        )


def probe() -> Probe:
    """Look for two seconds: on each core first at timers, then at what it computes."""
    call = [sys.executable, "-S", "-c", _CHILD, str(_WAIT_S), str(_WORK_S)]
    cores = os.sched_getaffinity(0)
    children = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for _ in cores]
    answers = [child.communicate()[0].split() for child in children]
    return Probe(sum(float(loops) for _, loops in answers), max(float(late) for late, _ in answers))
