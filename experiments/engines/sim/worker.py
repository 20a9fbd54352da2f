"""One simulation in a process of its own: a description on standard input, what was found on standard output.

A process for each run tells its memory, can be ended at once, and imports little.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from mstcp._core import sim

REFUSED = 2
"""Exit status for a description that is not one; the reason is on standard error."""


def main() -> int:
    """Run the description; returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    description = sys.stdin.read()
    started = time.perf_counter()
    try:
        results = sim.run(description)
    except sim.InvalidDescription as error:
        sys.stderr.write(": ".join(filter(None, map(str, error.args))))
        return REFUSED
    wall_s = time.perf_counter() - started
    cost = {"wall_s": wall_s, "peak_rss_bytes": peak_rss_bytes()}
    sys.stdout.write(json.dumps(cost) + "\n" + results)
    return 0


def peak_rss_bytes() -> int:
    """Return the most memory that this process has held.

    `getrusage` would count that of the parent at the fork too.
    """
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
