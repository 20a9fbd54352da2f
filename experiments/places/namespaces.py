"""A worker in namespaces of its own, so that nothing it makes can outlive it.

The worker gets its own network, mount and PID namespace (util-linux `unshare`). Interfaces, bridges, hosts
and processes live inside; when its first process ends, the kernel ends and removes all of them, however that
happens.

The parent gives the job as one line on the worker's standard input and holds that pipe open: its end, whether
by Ctrl-C or because the parent was killed, tells the worker to stop. The worker writes its progress as JSON
lines to its standard output; what Mininet and others print goes to OUT/worker.log.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from experiments.engines.base import Engine
from experiments.errors import MissingRequirement, RunFailed
from experiments.installation import ROOT
from experiments.model.atomic_files import output_errors
from experiments.model.events import Report, from_line
from experiments.model.job import Job
from experiments.places.base import WorkerEvents, last_line
from switch.capabilities import NAMESPACES, probe_rights

TIMEOUT_S = 10.0
"""How long a worker that was told to stop may take before it is killed."""
UNSHARE = ("unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", "--")


def require_namespaces() -> None:
    """Refuse where namespaces cannot be made (MissingRequirement: with what to do)."""
    if os.geteuid() != 0:
        command = " ".join(["sudo", *sys.argv])
        raise MissingRequirement(
            "The live engine makes network namespaces and needs root.", f"Run: {command}"
        )
    rights = probe_rights()
    if not rights.available:
        raise MissingRequirement(
            f"The live engine makes network namespaces, and {rights.detail}.", f"To fix it: {rights.remedy}."
        )


class Namespaces:
    """Makes all runs of a job in one worker with network, mount and PID namespaces of its own."""

    def check(self) -> None:
        """Refuse where namespaces cannot be made."""
        require_namespaces()

    def run(self, job: Job, engine: Engine, report: Report) -> None:
        """Run a job in a worker until it ends; its log goes to OUT/worker.log.

        Raises:
            RunFailed: the worker ended before its time; the text has the last line of its log.
            OutputError: the worker could not write its results.
            KeyboardInterrupt: the user stopped; the worker has ended by then.
        """
        del engine
        log = job.out / "worker.log"
        events = WorkerEvents(report)
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        with (
            _opened(log) as log_file,
            subprocess.Popen(
                [*UNSHARE, sys.executable, "-m", "experiments.places.namespaces_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C on the terminal is the parent's alone
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                with suppress(BrokenPipeError):  # it has ended already; why, its log says
                    process.stdin.write(job.model_dump_json().encode() + b"\n")
                    process.stdin.flush()
                for line in process.stdout:
                    events.take(from_line(line))
                code = process.wait(TIMEOUT_S)
            except BaseException:
                _stop(process)
                raise
        if not events.finished or code != 0:
            raise RunFailed("The experiment", events.why_not_finished(code, last_line(log)), str(log))


def _opened(log: Path) -> IO[bytes]:
    with output_errors(log):
        return log.open("ab")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Tell the worker to stop, and kill it when its time is over or the user insists."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    killer = threading.Timer(TIMEOUT_S, process.kill)
    killer.start()
    try:
        process.stdout.read()  # or a worker with much to say would block on a full pipe
        process.wait()
    except KeyboardInterrupt:
        process.kill()
        process.wait()
    finally:
        killer.cancel()
