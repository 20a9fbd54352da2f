"""A worker in namespaces of its own, so that nothing it makes can outlive it.

The worker gets its own network, mount and PID namespace (util-linux `unshare`). Interfaces, bridges, hosts
and processes live inside; when its first process ends, the kernel ends and removes all of them, however that
happens.

The parent gives the job as one line on the worker's standard input and holds that pipe open: its end, whether
by Ctrl-C or because the parent was killed, tells the worker to stop. The worker writes its progress as JSON
lines to its standard output; what Mininet and others print goes to OUT/worker.log.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.errors import MissingRequirement, OutputError, RunFailed

PATIENCE_S = 10.0
"""How long a worker that was told to stop may take before it is killed."""
UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
OVS_FOLDER = Path("/run/mstcp-lab/ovs")
"""In the sandbox's own /run: socket paths must be short, and its database is of no use afterwards."""
ROOT = Path(__file__).resolve().parents[1]


def require_root() -> None:
    """Refuse with the command to use instead where namespaces cannot be made."""
    if os.geteuid() != 0:
        command = " ".join(["sudo", *sys.argv])
        raise MissingRequirement(
            "The live engine makes network namespaces and needs root.", f"Run: {command}"
        )
    if shutil.which("unshare") is None:
        raise MissingRequirement("The command unshare is missing.", "Run: apt-get install util-linux")


def run_worker(job: str, out: Path, report: Callable[[dict[str, Any]], None]) -> None:
    """Run a job in a sandboxed worker until it ends, handing its events to `report`.

    Args:
        job: the job as one line of JSON.
        out: the folder that the worker writes to; its log goes there too.
        report: called with each event.

    Raises:
        RunFailed: the worker ended before its time; the text has the last line of its log.
        OutputError: the worker could not write its results.
        KeyboardInterrupt: the user stopped; the worker has ended by then.
    """
    log = out / "worker.log"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with (
        log.open("ab") as log_file,
        subprocess.Popen(
            [*UNSHARE, sys.executable, "-m", "experiments.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_file,
            env=environment,
            start_new_session=True,  # Ctrl-C on the terminal is the parent's alone
        ) as process,
    ):
        assert process.stdin is not None
        try:
            process.stdin.write(job.encode() + b"\n")
            process.stdin.flush()
            finished = _forward(process, report)
            code = process.wait(PATIENCE_S)
        except BaseException:
            _stop(process)
            raise
    if not finished or code != 0:
        reason = f"the worker ended with status {code}: {_last_line(log)}"
        raise RunFailed("The experiment", reason, str(log))


def _forward(process: subprocess.Popen[bytes], report: Callable[[dict[str, Any]], None]) -> bool:
    """Hand on the worker's events until it closes its output; True if it said that it was done."""
    assert process.stdout is not None
    finished = False
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "output-error":
            raise OutputError(event["path"], event["reason"])
        if event["event"] == "finished":
            finished = True
        else:
            report(event)
    return finished


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Tell the worker to stop, and kill it when its time is over or the user insists."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    killer = threading.Timer(PATIENCE_S, process.kill)
    killer.start()
    try:
        process.stdout.read()  # or a worker with much to say would block on a full pipe
        process.wait()
    except KeyboardInterrupt:
        process.kill()
        process.wait()
    finally:
        killer.cancel()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it left no log."
