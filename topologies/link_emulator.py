"""Client of the `link-emulator` process, which makes links of pairs of network interfaces.

The process runs in the network namespace of its starter. When the starter ends, however it ends, the process
loses its input and ends too. The requests are those of docs/architecture.md, one JSON object a line.

    LinkError                    (an EmulationError)
    ├── EmulatorMissingError     the program is not built
    ├── EmulatorDiedError        the process ended or no longer answers
    └── RequestRefusedError      the process refused a request
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topologies.errors import EmulationError

BINARY_VARIABLE = "LINK_EMULATOR"
BINARY = Path(__file__).resolve().with_name("link-emulator")
"""Beside this module, in a checkout and in an installed package alike."""
# A request takes milliseconds; on a machine too busy for this, no link is worth having.
ANSWER_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0


class LinkError(EmulationError):
    """Something about the link emulator is wrong."""


@dataclass(eq=False)
class EmulatorMissingError(LinkError):
    """The program is not where it should be."""

    path: Path

    def __str__(self) -> str:
        return (
            f"{self.path} is missing: build it with `make setup` in a checkout, install mstcp-lab again "
            f"elsewhere, or name it in {BINARY_VARIABLE}"
        )


@dataclass(eq=False)
class EmulatorDiedError(LinkError):
    """The process has ended, or does not answer any more; no link works.

    Attributes:
        status: Its exit status; None if it did not answer in time and was killed.
        output: What it wrote to standard error.
    """

    status: int | None
    output: str

    def __str__(self) -> str:
        if self.status is None:
            return f"the link emulator did not answer in {ANSWER_TIMEOUT_S:g} s and was killed: free a core"
        reason = self.output.strip() or "it gave no reason"
        return f"the link emulator ended with status {self.status}: {reason}"


@dataclass(eq=False)
class RequestRefusedError(LinkError):
    """The process could not do what it was asked to; everything is as it was.

    Attributes:
        request: What was asked for.
        field: The field that is wrong, as `a_to_b.loss`; None if it is about no field.
        reason: What is wrong with it.
    """

    request: Mapping[str, object]
    field: str | None
    reason: str

    def __str__(self) -> str:
        wire = self.request.get("wire")
        return f"link emulator, {self.request['cmd']}{f' {wire}' if wire else ''}: {self.reason}"


def find_binary() -> Path:
    """Return the path of the program: that in the variable LINK_EMULATOR, else the package's own.

    Raises:
        EmulatorMissingError: there is none.
    """
    named = os.environ.get(BINARY_VARIABLE)
    path = Path(named) if named else BINARY
    if not os.access(path, os.X_OK) or path.is_dir():
        raise EmulatorMissingError(path)
    return path


class LinkEmulator:
    """A running link emulator. Use it as a context manager, or call `stop`.

    A shape is a mapping with any of the keys rate_bps (bit/s over whole Ethernet frames; None: infinite),
    delay_us, queue_packets and queue_bytes (waiting, without the packet in service; None: unlimited),
    loss (0 to below 1), jitter_us (uniform from 0 to this, on top of the delay) and seed.

    Args:
        binary: The program; None finds it.
        realtime_priority: SCHED_FIFO priority, 1 to 99; 0 runs at normal priority.
        exact_clock: Whether sleeps end on time, as in virtual time: it runs at normal priority, and wakes for
            each frame.

    Raises:
        EmulatorMissingError: the program is not built.
        EmulatorDiedError: it may not open packet sockets.
    """

    def __init__(
        self, binary: Path | None = None, realtime_priority: int = 50, exact_clock: bool = False
    ) -> None:
        timing = ["--virtual-time"] if exact_clock else ["--realtime-priority", str(realtime_priority)]
        command = [str(binary or find_binary()), *timing]
        # A session of its own: Ctrl-C is for the program that uses the links, which may want them to the end.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._received = b""
        self._is_stopped = False
        try:
            self.stats()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> LinkEmulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def add(
        self,
        wire: str,
        a: str,
        b: str,
        a_to_b: Mapping[str, object] | None = None,
        b_to_a: Mapping[str, object] | None = None,
        wifi: Mapping[str, object] | None = None,
    ) -> None:
        """Make a link of two interfaces of this namespace, set up and kept free of ARP and IPv6.

        Args:
            wire: The link's name.
            a: An interface; what comes in there goes out at `b`.
            b: The other interface.
            a_to_b: Shape; what is missing is a perfect link's.
            b_to_a: Likewise for the other direction.
            wifi: A medium in place of shapes (docs/architecture.md).

        Raises:
            RequestRefusedError: the name or an interface is taken or missing, or a shape is wrong.
            EmulatorDiedError: there is no process any more.
        """
        given = {
            key: value for key, value in [("a_to_b", a_to_b), ("b_to_a", b_to_a), ("wifi", wifi)] if value
        }
        self._request("add", wire=wire, a=a, b=b, **given)

    def set(
        self,
        wire: str,
        a_to_b: Mapping[str, object] | None = None,
        b_to_a: Mapping[str, object] | None = None,
        up: bool | None = None,
    ) -> None:
        """Change a link while it works.

        Args:
            wire: The link's name.
            a_to_b: The properties that change; they hold for packets that are not in service yet.
            b_to_a: Likewise for the other direction.
            up: False cuts the link and loses the packets on it; True restores it.

        Raises:
            RequestRefusedError: there is no such link, or a shape is wrong.
            EmulatorDiedError: there is no process any more.
        """
        changes: dict[str, object] = {"a_to_b": a_to_b, "b_to_a": b_to_a, "up": up}
        given = {key: value for key, value in changes.items() if value is not None}
        self._request("set", wire=wire, **given)

    def remove(self, wire: str) -> None:
        """Take a link apart; its interfaces stay.

        Raises:
            RequestRefusedError: there is no such link.
            EmulatorDiedError: there is no process any more.
        """
        self._request("remove", wire=wire)

    def stats(self) -> dict[str, Any]:
        """Return the process's report (docs/architecture.md).

        Counters count from the link's start, lateness from the last report (None if nothing was released).

        Raises:
            EmulatorDiedError: there is no process any more.
        """
        return self._request("stats")

    def begin_stop(self) -> None:
        """Tell the process to end, without waiting: the kernel takes 20 ms for each interface it used."""
        self._is_stopped = True
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def stop(self) -> None:
        """End the process; all links end with it. Does nothing the second time."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        if self._process.stdout.closed:
            return
        self.begin_stop()
        self._wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def _request(self, command: str, **arguments: object) -> dict[str, Any]:
        if self._is_stopped:
            raise EmulatorDiedError(self._process.returncode, "it was stopped")
        request = {"cmd": command, **arguments}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._death() from None
        answer: dict[str, Any] = json.loads(self._read_line())
        if not answer["ok"]:
            raise RequestRefusedError(request, answer["field"], answer["error"])
        return answer

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while b"\n" not in self._received:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._process.kill()
                raise EmulatorDiedError(None, "")
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                raise self._death()
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _death(self) -> EmulatorDiedError:
        status = self._wait()
        assert self._process.stderr is not None
        output = self._process.stderr.read().decode(errors="replace")
        return EmulatorDiedError(status, output.removeprefix("link-emulator: "))

    def _wait(self) -> int:
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
