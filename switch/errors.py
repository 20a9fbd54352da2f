"""Errors of the switches. Catch `SwitchError` for all of them.

SwitchError
├── SwitchUnavailable        Open vSwitch or the datapath is not there
│   └── BpfUnavailable       libbpf, the kernel's BPF, the right to it or the compiled splitter is not there
├── BpfFailed                the kernel or libbpf refused a step of the splitter
├── InvalidSplit             (also a ValueError) a flow or split that cannot be
├── DaemonFailed             a private instance's daemon did not start or died
└── CommandFailed            an ovs-vsctl, ovs-ofctl or ovs-appctl failed
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass


class SwitchError(Exception):
    """Root of the errors of this package."""


@dataclass(eq=False)
class SwitchUnavailable(SwitchError):
    """Something that this machine does not have; `remedy` is the command or setting that fixes it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.remedy}"


class BpfUnavailable(SwitchUnavailable):
    """Packets cannot be split by XDP on this machine, or not by this user."""


@dataclass(eq=False)
class BpfFailed(SwitchError):
    """The kernel or libbpf refused a step of the splitter; `number` is the reason as errno has it."""

    step: str
    number: int
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f": {self.remedy}" if self.remedy else ""
        return f"{self.step} failed ({os.strerror(self.number)}){remedy}"


@dataclass(eq=False)
class InvalidSplit(SwitchError, ValueError):
    """A flow or split that cannot be; `field` is `shares`, `stamps`, or the name of a value of the flow."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass(eq=False)
class DaemonFailed(SwitchError):
    """A daemon (`ovsdb-server` or `ovs-vswitchd`) of a private instance did not start, or died."""

    daemon: str
    reason: str
    log_tail: str

    def __str__(self) -> str:
        log = f"; the end of its log:\n{self.log_tail}" if self.log_tail else "; it has left no log"
        return f"{self.daemon} {self.reason}{log}"


@dataclass(eq=False)
class CommandFailed(SwitchError):
    """A command to Open vSwitch failed; `output` is what it printed on standard error."""

    command: Sequence[str]
    output: str

    def __str__(self) -> str:
        return f"`{shlex.join(self.command)}` failed: {self.output.strip() or 'it gave no reason'}"
