"""Programs that are forked from this process, which has imported their modules.

An interpreter of its own with NumPy and the library takes 0.3 s of a core to come up, in a virtual kernel
four times that, and a run has one for each host at which flows begin or end, and the controller, which
imports the rest by itself while the network is built.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from topologies.commands import join_namespace

_PR_SET_NAME = 15
_MAX_NAME_BYTES = 15
_STACK_SLOTS = 40_000
_libc = ctypes.CDLL(None, use_errno=True)


class ForkedProgram:
    """A function in a process of its own; used as a `Popen` is.

    `function` is `module:name`; it is called with `arguments` and returns the exit status. The first 15
    characters of `name` are what `ps -o comm` shows. Output goes to `log`; with `piped` standard input and
    output are pipes. With `host_pid` it joins the network and mount namespaces of that process.
    """

    def __init__(
        self,
        name: str,
        function: str,
        *arguments: object,
        log: Path,
        piped: bool = False,
        host_pid: int | None = None,
    ) -> None:
        called = _imported(function)
        self._name = name
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        streams: list[int] = []
        if piped:
            its_input, orders = os.pipe()
            answers, its_output = os.pipe()
            streams = [its_input, its_output]
            self.stdin, self.stdout = os.fdopen(orders, "wb"), os.fdopen(answers, "rb", buffering=0)
        self.pid = os.fork()
        """Its process id."""
        if self.pid == 0:
            _be_program(name, lambda: called(*arguments), streams, log, host_pid)
        self._ending = os.pidfd_open(self.pid)
        for descriptor in streams:
            os.close(descriptor)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its status, None while it runs; negative where a signal ended it."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its status (subprocess.TimeoutExpired: it still runs)."""
        if self.returncode is None:
            ending = select.poll()
            ending.register(self._ending, select.POLLIN)
            if not ending.poll(None if timeout is None else timeout * 1e3):
                raise subprocess.TimeoutExpired(self._name, timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._ending)
        return self.returncode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _imported(function: str) -> Callable[..., int]:
    module, _, name = function.partition(":")
    found: Callable[..., int] = getattr(importlib.import_module(module), name)
    gc.freeze()  # pages that a collector does not write to stay shared
    return found


def _with_room(call: Callable[[], int]) -> int:
    return call()


# Python maps 16 KiB, and unmaps them again, whenever calls cross the end of what it has for frames: after a
# frame that asks for much there is room for all others.
_with_room.__code__ = _with_room.__code__.replace(co_stacksize=_STACK_SLOTS)


def _be_program(
    name: str, call: Callable[[], int], streams: Sequence[int], log: Path, host_pid: int | None
) -> NoReturn:
    """Be the program, in the forked process."""
    status = 1
    try:
        _libc.prctl(_PR_SET_NAME, name.encode()[:_MAX_NAME_BYTES], 0, 0, 0)
        errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        streams = streams or (os.open(os.devnull, os.O_RDONLY), errors)
        for number, descriptor in enumerate((*streams, errors)):
            os.dup2(descriptor, number)
        # Who waits for the end of another's pipe must not wait for this one.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, buffering=1) for number, mode in enumerate(("r", "w", "w"))
        )
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if host_pid is not None:
            _enter(host_pid)
        status = _with_room(call)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _enter(pid: int) -> None:
    """Join the network and mount namespaces of a process, as Mininet's `mnexec -a` does."""
    folder = Path.cwd()  # a mount namespace begins at its root
    join_namespace(pid, "net")
    join_namespace(pid, "mnt")
    os.chdir(folder)
