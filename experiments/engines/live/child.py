"""Processes that speak JSON lines with the engine: read with a deadline, ended by their own id."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import struct
import subprocess
import termios
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from experiments.engines.live.forked import ForkedProgram
from switch.processes import TIMEOUT_S, end_process

Running: TypeAlias = "ForkedProgram | subprocess.Popen[bytes]"
READ_BYTES = 65536
SAMPLED = "sampled"
"""The event that may come at any time: what a source has sent so far."""
MAX_SAMPLES = 4096
"""Kept until they are asked for; the oldest go first."""


class ChildFailed(Exception):
    """A child ended, was silent for too long or reported a failure; the text says which."""


class Child:
    """A process whose standard output is JSON lines; its standard error goes to `log`.

    `name` is what sentences call it; its standard input and output are binary pipes.
    """

    def __init__(self, name: str, process: Running, log: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.name = name
        self._process = process
        self._log = log
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._pending = b""
        self._samples: deque[dict[str, Any]] = deque(maxlen=MAX_SAMPLES)
        os.set_blocking(self._stdout.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, message: dict[str, Any]) -> None:
        """Send one JSON line (ChildFailed: it has ended)."""
        try:
            self._stdin.write(json.dumps(message).encode() + b"\n")
            self._stdin.flush()
        except OSError:
            raise ChildFailed(self._end_text()) from None

    def expect(self, event: str, timeout_s: float) -> dict[str, Any]:
        """Return the next event, which must be of a kind (ChildFailed: it is not, or does not come)."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._after_samples():
            left = deadline - time.monotonic()
            if left <= 0:
                raise ChildFailed(
                    f"{self.name} did not come to {event!r} within {timeout_s:g} s.{self._tail()}"
                )
            if self._selector.select(left):
                data = self._stdout.read(READ_BYTES)
                if not data:
                    raise ChildFailed(self._end_text())
                self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        if message["event"] == "failed":
            raise ChildFailed(f"{self.name}: {message['reason']}")
        if message["event"] != event:
            raise ChildFailed(f"{self.name} came to {message['event']!r} where {event!r} was expected.")
        return message

    def sampled(self) -> list[dict[str, Any]]:
        """Return what it has told of its samples since the last call, without waiting."""
        # Asked for before it is read: a reading that fails would move a virtual clock on.
        waiting = struct.unpack("i", fcntl.ioctl(self._stdout, termios.FIONREAD, bytes(4)))[0]
        if waiting:
            self._pending += os.read(self._stdout.fileno(), waiting)
        self._after_samples()
        told = list(self._samples)
        self._samples.clear()
        return told

    def check_alive(self) -> None:
        """Raise ChildFailed if it has ended."""
        if self._process.poll() is not None:
            # A failure that it has told about says more than its exit status.
            self.expect("running", 0.1)

    def stop(self) -> None:
        """End it if it still runs, and close its pipes."""
        end_process(self._process)
        self._selector.close()
        for pipe in (self._stdin, self._stdout):
            with suppress(OSError):
                pipe.close()

    def _after_samples(self) -> bytes:
        """Put aside the samples that what was read begins with; returns the rest."""
        while b"\n" in self._pending:
            line, _, rest = self._pending.partition(b"\n")
            message: dict[str, Any] = json.loads(line)
            if message["event"] != SAMPLED:
                break
            self._samples.append(message)
            self._pending = rest
        return self._pending

    def _end_text(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(TIMEOUT_S)
        return f"{self.name} ended with status {self._process.returncode}.{self._tail()}"

    def _tail(self) -> str:
        return last_line(self._log)


def last_line(log: Path) -> str:
    """Return ` Its last words: …` from a log, or nothing where it is empty."""
    lines = (
        [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        if log.exists()
        else []
    )
    return f" Its last words: {lines[-1].strip()}" if lines else ""
