"""What a live run costs: processor time for each packet-hop, and the time around its traffic.

`python -m benchmarks.live_cost [--protocol P] [--case C] [--duration S] [--repeats N] [--json]` (root) makes
runs of the butterfly. A packet-hop is a packet over one link. Processor time is the scheduler's own
(schedstat), from two seconds after the first byte until half a second before the last; what the kernel does
counts for the program that it does it for. Set-up ends when all flows are connected, tear-down begins when
the sources stop. Medians of the repeats.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.command_line import command_line, show
from experiments import runner
from experiments.model import scenario
from experiments.model.events import Event, FlowsConnected, InRun, PhaseBegun, RunFinished, RunStarted
from experiments.model.job import Job
from topologies import load

AFTER_FIRST_BYTE_S, BEFORE_LAST_BYTE_S = 2.0, 0.5
PROGRAMS = {
    "ovs-vswitchd": "switches",
    "link-emulator": "links",
    "controller.cli": "controller",
    "source-": "sources",
    "sink-": "sinks",
    "ovsdb-server": "engine",
    "namespaces_worker": "engine",
}
"""What a program is called by here, by a part of its command line or name."""


def main() -> int:
    """Measure as the command line says, and print the medians."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--protocol", default="mstcp")
    parser.add_argument("--case", default="1")
    parser.add_argument("--duration", type=float, default=10.0, metavar="S")
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        print("this makes networks: run it with sudo", file=sys.stderr)
        return 2
    measured = [
        measure(arguments.protocol, arguments.case, arguments.duration) for _ in range(arguments.repeats)
    ]
    medians = {key: statistics.median(each[key] for each in measured) for key in measured[0]}
    show(medians, arguments.json)
    return 0


def measure(protocol: str, case: str, duration_s: float) -> dict[str, float]:
    """Make one run, and return its cores by program, packet-hops a second and times."""
    given = scenario.load("butterfly")
    moments: dict[str, float] = {}
    reading: dict[str, tuple[float, dict[str, float], int]] = {}
    timers: list[threading.Timer] = []

    def read(name: str) -> None:
        reading[name] = time.monotonic(), processor_s(), packet_hops()

    def take(event: Event) -> None:
        told = event.told if isinstance(event, InRun) else event
        if isinstance(told, RunStarted):
            moments["started"] = time.monotonic()
        elif isinstance(told, FlowsConnected):
            moments["connected"] = time.monotonic()
            whole_s = given.warm_up_s + duration_s
            for name, after_s in (("first", AFTER_FIRST_BYTE_S), ("last", whole_s - BEFORE_LAST_BYTE_S)):
                timers.append(threading.Timer(after_s, read, (name,)))
                timers[-1].start()
        elif isinstance(told, PhaseBegun) and told.text == "draining":
            moments["stopped"] = time.monotonic()
        elif isinstance(told, RunFinished):
            moments["finished"] = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        job = Job(
            engine="live",
            scenario=given,
            network=load(given.network),
            variant=None,
            overrides={},
            cases=(case,),
            protocols=(protocol,),
            seeds=(1,),
            duration_s=duration_s,
            out=Path(folder) / "results",
        )
        outcome = runner.run(job, take)
    if outcome.failures or "last" not in reading:
        sys.exit(f"the run failed: {'; '.join(outcome.failures)}")
    (from_s, before, hops_before), (until_s, after, hops_after) = reading["first"], reading["last"]
    passed_s, hops = until_s - from_s, hops_after - hops_before
    used_s = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in PROGRAMS.values()}
    return {
        **{f"{name}_cores": used / passed_s for name, used in used_s.items()},
        "all_cores": sum(used_s.values()) / passed_s,
        "packet_hops_per_s": hops / passed_s,
        "forwarding_us_per_hop": (used_s["switches"] + used_s["links"]) / hops * 1e6,
        "all_us_per_hop": sum(used_s.values()) / hops * 1e6,
        "set_up_s": moments["connected"] - moments["started"],
        "tear_down_s": moments["finished"] - moments["stopped"],
    }


def processor_s() -> dict[str, float]:
    """Return the processor time that each kind of program has had so far, all threads together."""
    used: Counter[str] = Counter()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # one that has just ended
            name = next((name for part, name in PROGRAMS.items() if part in called(process)), None)
            if name is not None:
                for task in (process / "task").iterdir():
                    used[name] += int((task / "schedstat").read_text().split()[0])
    return {name: ns * 1e-9 for name, ns in used.items()}


def called(process: Path) -> str:
    """Return the name of a process, and of an interpreter what it was started with."""
    name = (process / "comm").read_text().strip()
    return (process / "cmdline").read_bytes().decode(errors="replace") if name.startswith("python") else name


def packet_hops() -> int:
    """Return how many packets all links of the running network have carried so far."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if called(process) == "link-emulator":
                lines = (process / "net" / "dev").read_text().splitlines()
                # The column of packets sent (proc(5)), of the interfaces between which links are carried.
                return sum(int(line.split()[10]) for line in lines if re.match(r"\s*wire\d+[ab]:", line))
    sys.exit("there is no link emulator: this measures networks whose links it makes")


if __name__ == "__main__":
    sys.exit(main())
