"""The worker in namespaces of its own: prepares them, runs the job, reports on standard output.

Process 1 of the PID namespace only reaps and waits; its child does the work. So daemons that detach from
their parents (Open vSwitch's) do not stay as zombies, which their stop scripts would wait for.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn, TextIO

STOP_TIMEOUT_S = 8.0
"""After the order to stop; then the worker ends as it is, and its namespaces with it."""


def main() -> NoReturn:
    """Run the job given on standard input; end with status 0 only if all runs were tried."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit(1)
    child = os.fork()
    if child:
        _reap_until(child)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    events = _private_stdout()
    threading.Thread(target=_stop_when_parent_goes, daemon=True).start()
    sys.exit(_work(line, events))


def _work(line: bytes, events: TextIO) -> int:
    # Imported after the fork: some of what they import starts threads.
    from experiments.model.events import Event, to_line
    from experiments.places.worker import work

    def report(event: Event) -> None:
        events.write(to_line(event))
        events.flush()

    return work(line, lambda job: prepare_namespaces(job.out, *job.extensions), report)


def _reap_until(child: int) -> NoReturn:
    """Wait for all children of process 1, and end with the status of the one that works."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(1)  # the reader of the events must see their end when the child ends
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _private_stdout() -> TextIO:
    """Keep standard output for events; what others print goes to standard error."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return events


def _stop_when_parent_goes() -> None:
    """Interrupt the work when standard input ends, and end it by force if that does not help."""
    while os.read(0, 4096):  # not sys.stdin: its lock would be held when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(130)


def prepare_namespaces(*keep: Path) -> None:
    """Bring loopback up and mount a /run and a /sys of our own, so that the host's are not used.

    Files and folders to keep stay as they are even if they lie under /run.
    """
    with ExitStack() as stack:
        descriptors = {path: os.open(path, os.O_RDONLY) for path in keep}
        for descriptor in descriptors.values():
            stack.callback(os.close, descriptor)
        _command("ip", "link", "set", "lo", "up")
        # The controller starts while the network is built, perhaps before the management network is there.
        _command("sysctl", "-q", "-w", "net.ipv4.ip_nonlocal_bind=1")
        _command("mount", "-t", "tmpfs", "tmpfs", "/run")
        _command("mount", "-t", "sysfs", "sysfs", "/sys")
        Path("/run/netns").mkdir()
        for path, descriptor in descriptors.items():
            if not path.exists():
                _show(path, descriptor)


def _show(path: Path, descriptor: int) -> None:
    """Let what is open be where it was before a file system was mounted over it."""
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    # As it is written: mount(8) would look for the path that it had, where something else lies by now.
    opened = f"/proc/{os.getpid()}/fd/{descriptor}"
    _command("mount", "--no-canonicalize", "--bind", opened, str(path))


def _command(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
