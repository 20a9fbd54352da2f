"""Programs in hosts that are forked from one interpreter, which has imported what they need.

An interpreter of its own with NumPy and the library takes 0.3 s of a core to come up, and a run has one for
each host at which flows begin or end. The fork server is `multiprocessing`'s; it imports while the network is
built, lives as long as this process, and serves all its runs.
"""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

_PR_SET_NAME = 15
_MOST_NAME_BYTES = 15
_libc = ctypes.CDLL(None, use_errno=True)
_context = multiprocessing.get_context("forkserver")


def begin_imports(modules: Sequence[str]) -> None:
    """Start the fork server and let it import modules, without waiting for it; not again the second time."""
    _context.set_forkserver_preload(list(modules))
    forkserver.ensure_running()


class ForkedProgram:
    """A module's `serve(config)` in a host, with pipes for standard input and output, as a `Popen` has it.

    The first 15 characters of `name` are what `ps -o comm` shows; `host_pid` is a process in the host; the
    module should be among those that `begin_imports` was given; standard error goes to `log`.
    """

    def __init__(self, name: str, host_pid: int, module: str, config: Path, log: Path) -> None:
        self._name = name
        its_input, orders = _context.Pipe(duplex=False)
        answers, its_output = _context.Pipe(duplex=False)
        with its_input, its_output, orders, answers:
            self._process = _context.Process(
                target=_serve, args=(name, host_pid, module, config, log, its_input, its_output), name=name
            )
            self._process.start()
            self._ending = select.poll()
            self._ending.register(self._process.sentinel)
            self.stdin: IO[bytes] | None = os.fdopen(os.dup(orders.fileno()), "wb")
            self.stdout: IO[bytes] | None = os.fdopen(os.dup(answers.fileno()), "rb", buffering=0)
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return its status, None while it runs; negative where a signal ended it."""
        # `multiprocessing` would ask for the time until it has moved on, which a virtual clock does late.
        if self.returncode is None and self._ending.poll(0):
            self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its status (subprocess.TimeoutExpired: it still runs)."""
        if self.returncode is None:
            self._process.join(timeout)
            self.returncode = self._process.exitcode
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self._name, timeout or 0.0)
        return self.returncode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def _serve(
    name: str, host_pid: int, module: str, config: Path, log: Path, orders: Connection, answers: Connection
) -> None:
    """Be the program, in the forked process."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:_MOST_NAME_BYTES], 0, 0, 0)
    with log.open("wb") as errors:
        for number, descriptor in enumerate((orders.fileno(), answers.fileno(), errors.fileno())):
            os.dup2(descriptor, number)
    orders.close()
    answers.close()
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=1) for number, mode in enumerate(("r", "w", "w"))
    )
    _enter(host_pid)
    sys.exit(importlib.import_module(module).serve(config))


def _enter(pid: int) -> None:
    """Join the network and mount namespaces of a process, as Mininet's `mnexec -a` does."""
    folder = Path.cwd()  # a mount namespace begins at its root
    for kind in ("net", "mnt"):
        descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
        try:
            if _libc.setns(descriptor, 0):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), f"namespace {kind} of process {pid}")
        finally:
            os.close(descriptor)
    os.chdir(folder)
