"""The splitter at a port: attaches the program, sets splits while packets flow, reads what they became."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from switch.bpf import libbpf
from switch.errors import BpfFailed, InvalidSplit
from switch.ppfs import gro
from switch.ppfs.split import COUNTERS_BYTES, MAX_FLOWS, FlowKey, pack_key, pack_split, unpack_counters

Mode = Literal["native", "generic"]

OBJECT = Path(__file__).with_name("splitter.bpf.o")
PROGRAM = "split_packets"
ARRAY_KEY_BYTES = 4
_IN_USE_ERRORS = (errno.EBUSY, errno.EEXIST)


class Splitter:
    """Splits flows per packet at an interface; a context manager.

    The interface is a port of a switch, in the network namespace of the caller; packets that arrive there are
    stamped before Open vSwitch reads them. The program is held by a file descriptor of this process and goes
    with it, however it ends. Children by fork alone hold it too, until they end or start another program.

    `set`, `remove` and `close` are for one thread at a time; `counters` may be read from any.

    Args:
        interface: its name.
        mode: `native` (in the driver), `generic` (in the kernel's receive path, any driver), or `auto`.

    Raises:
        BpfUnavailable: libbpf, the kernel's part or the right to it is missing.
        BpfFailed: there is no such interface, it has an XDP program already, or its driver has no
            `native` mode for it.
        ValueError: there is no such mode.
    """

    def __init__(self, interface: str, mode: Literal["auto", "native", "generic"] = "auto") -> None:
        if mode not in ("auto", "native", "generic"):
            raise ValueError(f"mode is auto, native or generic, not {mode!r}")
        self.interface = interface
        self._paths: dict[FlowKey, int] = {}
        self._link: int | None = None
        try:
            index = socket.if_nametoindex(interface)
        except OSError:
            step = f"finding the interface {interface}"
            raise BpfFailed(step, errno.ENODEV, "name one of this network namespace (ip link)") from None
        self._object = libbpf.BpfObject(OBJECT)
        try:
            self._flows = self._object.map("flows")
            self._counters = self._object.map("counters")
            self._link, self._mode = self._attach(index, mode)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Splitter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def mode(self) -> Mode:
        """How the program is attached: `native` or `generic`."""
        return self._mode

    @property
    def flows(self) -> tuple[FlowKey, ...]:
        """The flows that are split."""
        return tuple(self._paths)

    def set(self, flow: FlowKey, shares: Sequence[float], stamps: Sequence[str]) -> None:
        """Split a flow, or change its split.

        Every packet sees the old split or the new one whole. It is in force, and no packet sees the old one
        any more, when this returns (tens of milliseconds). The counters go on.

        Args:
            flow: what to split.
            shares: of the paths, 1 to 16, none negative, their sum 1; 0 rests a path.
            stamps: for each path the Ethernet source address that its packets get.

        Raises:
            InvalidSplit: shares or stamps are not so.
            BpfFailed: with E2BIG where 1024 flows are split already.
        """
        self._require_open()
        key, value = pack_key(flow), pack_split(shares, stamps)
        known = flow in self._paths
        if not known:
            self._add_counters(key)
        try:
            self._publish(key, value)
        except BaseException:
            if not known:
                libbpf.delete(self._counters, key)
            raise
        self._paths[flow] = max(len(shares), self._paths.get(flow, 0))

    def remove(self, flow: FlowKey) -> None:
        """Split a flow no more, and forget its counters. Does nothing where it is not split."""
        self._require_open()
        if flow in self._paths:
            key = pack_key(flow)
            # In this order no packet counts for a flow that is not split.
            libbpf.delete(self._flows, key)
            libbpf.delete(self._counters, key)
            del self._paths[flow]

    def counters(self, flow: FlowKey) -> list[tuple[int, int]]:
        """Return packets and bytes of each path since the flow was first set.

        Bytes are those of Ethernet frames without their check sequence. The list is as long as the flow's
        split with the most paths.

        Raises:
            InvalidSplit: the flow is not split here.
        """
        self._require_open()
        if flow not in self._paths:
            raise InvalidSplit("flow", f"{flow} is not split at {self.interface}")
        values = libbpf.look_up_each_cpu(self._counters, pack_key(flow), COUNTERS_BYTES)
        return unpack_counters(values, self._paths[flow])

    def close(self) -> None:
        """Detach the program and let go of everything. Does nothing the second time."""
        link, self._link = self._link, None
        if link is not None:
            os.close(link)
        self._object.close()

    def _attach(self, index: int, mode: Literal["auto", "native", "generic"]) -> tuple[int, Mode]:
        if mode != "auto":
            return self._attach_as(index, mode), mode
        try:
            return self._attach_as(index, "native"), "native"
        except BpfFailed as failure:
            if failure.number in _IN_USE_ERRORS:
                raise
        return self._attach_as(index, "generic"), "generic"

    def _attach_as(self, index: int, mode: Mode) -> int:
        merges = mode == "generic" or gro.is_on(self.interface)
        try:
            link = self._object.attach_xdp(PROGRAM, index, mode)
        except BpfFailed as failure:
            step = f"attaching the splitter to {self.interface} in {mode} mode"
            raise BpfFailed(step, failure.number, self._remedy(failure.number)) from None
        try:
            if not merges and gro.is_on(self.interface):
                gro.switch_off(self.interface)
        except BaseException:
            os.close(link)
            raise
        return link

    def _remedy(self, number: int) -> str:
        if number in _IN_USE_ERRORS:
            return f"another XDP program is there; see `ip -d link show dev {self.interface}`"
        return "the driver has no such mode for this interface as it is (its MTU counts): try mode generic"

    def _add_counters(self, key: bytes) -> None:
        try:
            libbpf.update(self._counters, key, bytes(COUNTERS_BYTES * libbpf.cpu_count()))
        except BpfFailed as failure:
            if failure.number == errno.E2BIG:
                remedy = f"{MAX_FLOWS} flows are split at {self.interface}, remove one"
                raise BpfFailed(failure.step, failure.number, remedy) from None
            raise

    def _publish(self, key: bytes, value: bytes) -> None:
        split = libbpf.create_array(ARRAY_KEY_BYTES, value)
        try:
            libbpf.update(self._flows, key, split.to_bytes(4, sys.byteorder))
        finally:
            # `flows` holds it from here on.
            os.close(split)

    def _require_open(self) -> None:
        if self._link is None:
            raise ValueError(f"the splitter at {self.interface} is closed")
