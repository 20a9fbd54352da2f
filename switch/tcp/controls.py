"""Registers our congestion controls with the running kernel, for as long as this process needs them.

The kernel has one list of controls for the whole machine, so each registration has names of its own, and any
number of processes have them at once. What is registered goes with the process, however that ends.
"""

from __future__ import annotations

import errno
import os
import platform
import secrets
from collections.abc import Iterable
from pathlib import Path

from switch.bpf.libbpf import BpfObject
from switch.errors import BpfFailed, BpfUnavailable

OBJECT = Path(__file__).with_name("controls.bpf.o")
COUPLED = ("lia", "olia", "balia", "fully_coupled")
RESPONSES = ("pr_r", "door")
"""Responses to reordering, which are congestion controls to the kernel: Reno with another reduction."""
NAMES = (*COUPLED, *RESPONSES)
NEEDS = "use Linux 6.4 or later with BPF's JIT and BTF (CONFIG_DEBUG_INFO_BTF), or the virtual engine"
_NAME_BYTES = 15
"""TCP_CA_NAME_MAX of the kernel without the zero at its end."""
_TOKEN_BYTES = 3
_SHORTENED_TO = _NAME_BYTES - len(".") - 2 * _TOKEN_BYTES


def given_name(registered: str) -> str:
    """Return the name of a congestion control that a kernel may have registered as ours under another."""
    short, dot, token = registered.rpartition(".")
    if dot and len(token) == 2 * _TOKEN_BYTES:
        return next((name for name in NAMES if name[:_SHORTENED_TO] == short), registered)
    return registered


class Controls:
    """Some of our congestion controls, registered; a context manager.

    Args:
        names: which; those that are not ours are the kernel's own, and left to it.

    Raises:
        BpfUnavailable: this machine or user cannot have them.
        BpfFailed: the kernel refuses them.
    """

    def __init__(self, names: Iterable[str]) -> None:
        token = secrets.token_hex(_TOKEN_BYTES)
        self._registered = {name: f"{name[:_SHORTENED_TO]}.{token}" for name in names if name in NAMES}
        self._object: BpfObject | None = None
        self._links: list[int] = []

    def __enter__(self) -> Controls:
        if self._registered:
            try:
                self._register()
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def registered(self, name: str) -> str:
        """Return what a socket is told to use a control."""
        return self._registered.get(name, name)

    def close(self) -> None:
        """Take them back; connections that use one keep it. Does nothing the second time."""
        for link in self._links:
            os.close(link)
        self._links.clear()
        if self._object is not None:
            self._object.close()
            self._object = None

    def _register(self) -> None:
        names = {_placeholder(name): name for name in NAMES}
        renamed = {old: self._registered.get(name, name).encode() for old, name in names.items()}
        padded = {old: new.ljust(len(old), b"\0") for old, new in renamed.items()}
        try:
            self._object = BpfObject(OBJECT, padded, NAMES)
            self._links.extend(self._object.register(name) for name in self._registered)
        except BpfFailed as failure:
            if failure.number in (errno.EPERM, errno.EEXIST):
                raise
            release = platform.release()
            what = f"Linux {release} does not take our congestion controls ({failure})"
            raise BpfUnavailable(what, NEEDS) from None


def _placeholder(name: str) -> bytes:
    """Return what stands in the object for the name that a control is registered by."""
    return f"@{name}".ljust(_NAME_BYTES, ".").encode()
