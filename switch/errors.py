"""Errors of the switches. Catch `SwitchError` for all of them.

SwitchError
├── SwitchUnavailable        Open vSwitch or the datapath is not there; carries `reason`, `remedy`
│   └── BpfUnavailable       libbpf, the kernel's BPF, the right to it or the compiled splitter is not there
├── BpfFailed                the kernel or libbpf refused a step of the splitter; carries `step`, `number`
├── InvalidSplit             (also a ValueError) a flow or split that cannot be; carries `field`, `reason`
├── DaemonFailed             a private instance's daemon did not start or died; carries `daemon`, `log_tail`
└── CommandFailed            an ovs-vsctl, ovs-ofctl or ovs-appctl failed; carries `command`, `output`
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

__all__ = [
    "BpfFailed",
    "BpfUnavailable",
    "CommandFailed",
    "DaemonFailed",
    "InvalidSplit",
    "SwitchError",
    "SwitchUnavailable",
]


class SwitchError(Exception):
    """Root of the errors of this package."""


class SwitchUnavailable(SwitchError):
    """Something that this machine does not have.

    Attributes:
        reason: What is missing.
        remedy: The command or setting that fixes it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"


class BpfUnavailable(SwitchUnavailable):
    """Packets cannot be split by XDP on this machine, or not by this user."""


class BpfFailed(SwitchError):
    """The kernel or libbpf refused a step of the splitter.

    Attributes:
        step: What was being done.
        number: The reason as errno has it.
        remedy: What to do about it; empty where nothing is known.
    """

    def __init__(self, step: str, number: int, remedy: str = "") -> None:
        super().__init__(step, number, remedy)
        self.step = step
        self.number = number
        self.remedy = remedy

    def __str__(self) -> str:
        remedy = f": {self.remedy}" if self.remedy else ""
        return f"{self.step} failed ({os.strerror(self.number)}){remedy}"


class InvalidSplit(SwitchError, ValueError):
    """A flow or split that cannot be.

    Attributes:
        field: `shares`, `stamps`, or the name of a value of the flow.
        reason: What is wrong with it.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class DaemonFailed(SwitchError):
    """A daemon of a private instance did not start, or died.

    Attributes:
        daemon: `ovsdb-server` or `ovs-vswitchd`.
        reason: What happened to it.
        log_tail: The last lines of its log.
    """

    def __init__(self, daemon: str, reason: str, log_tail: str) -> None:
        super().__init__(daemon, reason, log_tail)
        self.daemon = daemon
        self.reason = reason
        self.log_tail = log_tail

    def __str__(self) -> str:
        log = f"; the end of its log:\n{self.log_tail}" if self.log_tail else "; it has left no log"
        return f"{self.daemon} {self.reason}{log}"


class CommandFailed(SwitchError):
    """A command to Open vSwitch failed.

    Attributes:
        command: The command with its arguments.
        output: What it printed on standard error.
    """

    def __init__(self, command: Sequence[str], output: str) -> None:
        super().__init__(tuple(command), output)
        self.command = tuple(command)
        self.output = output

    def __str__(self) -> str:
        return f"`{shlex.join(self.command)}` failed: {self.output.strip() or 'it gave no reason'}"
