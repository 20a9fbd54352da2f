"""What a Dask cluster costs: a study's runs in processes of this machine, and on local workers, in CPU time.

    python -m benchmarks.cluster [--study kato-flow] [--seeds 2] [--workers 4]

CPU time is user and system time of every process that takes part: the simulations, and with a cluster its
scheduler, its workers and the client. What starting the cluster takes, once for any number of runs, is told
by itself.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.command_line import command_line
from experiments.engines.sim.process import Processes
from experiments.scheduling.cluster import Cluster
from experiments.studies import schema
from experiments.studies.measure import Measured, run

ROOT = Path(__file__).parents[1]
START_S = 60.0


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--study", default="kato-flow")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    study = schema.load(args.study)
    plain, plain_cpu_s, plain_wall_s = _measure(lambda: run([study], args.seeds, Processes())[0])
    started: list[float] = []
    there, cluster_cpu_s, cluster_wall_s = _measure(
        lambda: _on_cluster(study, args.seeds, args.workers, started)
    )
    cluster_cpu_s -= started[0]
    if plain != there:
        raise SystemExit("the results differ")
    print(f"{args.study}, {args.seeds} seeds, {args.workers} workers, {len(os.sched_getaffinity(0))} cores")
    print(f"processes  {plain_cpu_s:7.1f} s CPU {plain_wall_s:7.1f} s")
    print(
        f"cluster    {cluster_cpu_s:7.1f} s CPU {cluster_wall_s:7.1f} s, and {started[0]:.1f} s CPU to start"
    )
    print(f"ratio      {cluster_cpu_s / plain_cpu_s:7.2f}")


def _measure(work: object) -> tuple[Measured, float, float]:
    assert callable(work)
    began_s, cpu_s = time.monotonic(), _cpu_s()
    measured: Measured = work()
    return measured, _cpu_s() - cpu_s, time.monotonic() - began_s


def _cpu_s() -> float:
    """Return the CPU time of this process and of all children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _used_s(pid: int) -> float:
    """Return the CPU time of a process that runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _on_cluster(study: schema.Study, seeds: int, workers: int, started: list[float]) -> Measured:
    """Run a study on a cluster of its own; `started` is given the CPU time that its start took."""
    pids: list[int] = []
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        file = folder / "scheduler.json"
        log = running.enter_context((folder / "log").open("wb"))

        def start(role: str, *options: str) -> None:
            argv = [
                sys.executable,
                "-m",
                "dask",
                role,
                "--scheduler-file",
                str(file),
                "--no-dashboard",
                *options,
            ]
            process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=ROOT)
            pids.append(process.pid)
            running.callback(process.wait)
            running.callback(process.terminate)

        start("scheduler", "--port", "0", "--host", "127.0.0.1")
        deadline = time.monotonic() + START_S
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(workers):
            start("worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")
        simulator = Cluster(json.loads(file.read_text())["address"])
        simulator.wait_for(workers)
        started.append(sum(map(_used_s, pids)))
        measured = run([study], seeds, simulator)[0]
        simulator.stop()
        return measured


if __name__ == "__main__":
    main()
