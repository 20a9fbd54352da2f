"""Errors of the switches. Catch `SwitchError` for all of them.

SwitchError
├── SwitchUnavailable        Open vSwitch or the datapath is not there; carries `reason`, `remedy`
├── DaemonFailed             a private instance's daemon did not start or died; carries `daemon`, `log_tail`
└── CommandFailed            an ovs-vsctl, ovs-ofctl or ovs-appctl failed; carries `command`, `output`
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

__all__ = ["CommandFailed", "DaemonFailed", "SwitchError", "SwitchUnavailable"]


class SwitchError(Exception):
    """Root of the errors of this package."""


class SwitchUnavailable(SwitchError):
    """Something that this machine does not have.

    Attributes:
        reason: What is missing.
        remedy: The command or setting that mends it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"


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
