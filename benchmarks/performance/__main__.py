"""Measures what docs/performance.md shows, keeps the documents, and renews the page.

python -m benchmarks.performance                     # the page from the documents that are kept
python -m benchmarks.performance measure [NAME ...]  # first make these of them again (root; an idle machine)
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command_line import command_line
from benchmarks.pages import DOCS, renew
from benchmarks.performance.tables import TABLES

KEPT = DOCS / "results" / "performance"
PAGE = "performance.md"
COMMANDS = {
    "transport": ("benchmarks.transport", "--quick"),
    "unequal": ("benchmarks.unequal", "--quick"),
    "uplinks": ("benchmarks.uplinks",),
    "controller": ("benchmarks.controller", "--quick"),
    "drills": ("benchmarks.drills", "--quick"),
    "gomr": ("benchmarks.gomr", "--quick"),
    # Teal's networks and matrices (github.com/harvard-cns/teal) are put there by hand.
    "sizes": ("benchmarks.gomr", "--sizes", "results/networks"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure if asked to, and renew the page; returns the exit status."""
    parser = command_line(__doc__)
    parser.add_argument("measure", nargs="?", choices=["measure"], help="make documents again")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(COMMANDS)} (default: all)")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.names) - set(COMMANDS):
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}: there are {', '.join(COMMANDS)}")
    if arguments.measure and os.geteuid() != 0:
        parser.error("network namespaces need root: run it with sudo")
    for name in (arguments.names or COMMANDS) if arguments.measure else ():
        print(f"performance: measuring {name}", file=sys.stderr, flush=True)
        keep(name)
    for name in COMMANDS:
        renew(PAGE, name, lines(name, json.loads(kept(name).read_text(encoding="utf-8"))))
    return 0


def kept(name: str) -> Path:
    """Return where a measurement is kept."""
    return KEPT / f"{name}.json"


def keep(name: str) -> None:
    """Measure, and keep the document with the machine and the date.

    Raises:
        RuntimeError: the benchmark printed no document.
    """
    load_average = os.getloadavg()[0]
    words = [sys.executable, "-m", *COMMANDS[name], "--json"]
    # A benchmark's status may say that a bound does not hold: what it measured is kept all the same.
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(words[1:])} ended with {done.returncode}: its reason is above")
    measurement = {
        "command": f"python {' '.join(words[1:])}",
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": machine(),
        "load_average": round(load_average, 1),
        "document": json.loads(done.stdout),
    }
    KEPT.mkdir(parents=True, exist_ok=True)
    kept(name).write_text(text_of(measurement), encoding="utf-8")


def text_of(measurement: dict[str, Any]) -> str:
    """Return a measurement as JSON; a document that is a list has a line for each row."""
    rows = measurement["document"]
    if not isinstance(rows, list):
        return json.dumps(measurement, indent=1) + "\n"
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    head = json.dumps({**measurement, "document": []}, indent=1) + "\n"
    return head.replace('"document": []', f'"document": [\n{lines}\n ]')


def machine() -> str:
    """Return processor, cores, kernel and Python of this machine."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    return (
        f"{len(os.sched_getaffinity(0))} cores ({models[0] if models else platform.machine()}), "
        f"Linux {platform.release()}, Python {platform.python_version()}"
    )


def lines(name: str, measurement: dict[str, Any]) -> list[str]:
    """Return how a measurement was made, and its table."""
    made = f"{measurement['date']}: {measurement['machine']}, load before {measurement['load_average']}"
    return [f"`{measurement['command']}` on {made}.", "", *TABLES[name](measurement["document"])]


if __name__ == "__main__":
    sys.exit(main())
