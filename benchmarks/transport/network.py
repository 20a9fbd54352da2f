"""Two hosts, each a namespace, and two paths between them; whatever is made here ends with this process."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

from benchmarks.transport.addresses import FAR, NEAR, SECOND_PATH_PORT, path_address
from topologies.commands import remove_interface, run, within
from topologies.link_emulator import LinkError

PATHS = 2

Shape = Mapping[str, object]


class Links(Protocol):
    """Makes shaped links of pairs of interfaces of this process's namespace, as `LinkEmulator` does."""

    def add(self, wire: str, a: str, b: str, a_to_b: Shape, b_to_a: Shape) -> None:
        """Make a link."""

    def remove(self, wire: str) -> None:
        """Take a link apart; its interfaces stay."""


class Network:
    """The paths between two hosts.

    Without an emulator the near host is this process's namespace, which must be a fresh one, and the paths
    are unlimited veth pairs. With one, both hosts are new namespaces, and the emulator shapes the paths.

    Args:
        emulator: What shapes the paths; its namespace is this process's.
        shapes: Of each path, both directions alike; see `LinkEmulator`.
        name: Of the wires, where several networks share an emulator.
    """

    def __init__(self, emulator: Links | None = None, shapes: Sequence[Shape] = (), name: str = "w") -> None:
        self._emulator = emulator
        self._wires: list[str] = []
        self._holders = [None if emulator is None else _namespace(), _namespace()]
        try:
            self._make(emulator, shapes, name)
        except BaseException:
            self.close()
            raise

    def _make(self, emulator: Links | None, shapes: Sequence[Shape], name: str) -> None:
        for path in range(PATHS):
            if emulator is None:
                self._veth(0, f"a{path}", 1, f"b{path}")
                continue
            wire = f"{name}{path}"
            self._wires.append(wire)
            self._veth(None, f"{wire}a", 0, f"a{path}")
            self._veth(None, f"{wire}b", 1, f"b{path}")
            emulator.add(wire, f"{wire}a", f"{wire}b", dict(shapes[path]), dict(shapes[path]))
        for side, letter, own, other in ((0, "a", NEAR, FAR), (1, "b", FAR, NEAR)):
            self._set_up(side, letter, own, other)
            self._run(side, "ip mptcp limits set subflow 1 add_addr_accepted 1")
        for path in range(PATHS):
            # Neighbours are asked for now: their answers are no part of a connection's first round trip.
            # An answer may be lost.
            self._run(0, f"ping -c 1 -w 9 -I a{path} {path_address(path, 1)}")
        self._run(1, f"ip mptcp endpoint add {path_address(1, 1)} dev b1 signal")

    def _veth(self, side: int | None, name: str, other_side: int, other_name: str) -> None:
        """Make a pair; the first end is in this process's namespace."""
        holder = self._holders[other_side]
        assert side is None or self._holders[side] is None
        assert holder is not None
        self._run(None, f"ip link add {name} type veth peer name {other_name} netns {holder.pid}")

    def _set_up(self, side: int, letter: str, own: str, other: str) -> None:
        ports = f"{SECOND_PATH_PORT}-{SECOND_PATH_PORT + 999}"
        direction = "dport" if side else "sport"
        commands = ["ip link set lo up", f"ip address add {own}/32 dev lo"]
        for path in range(PATHS):
            here, there = path_address(path, side), path_address(path, 1 - side)
            table = "main" if path == 0 else str(100 + path)
            commands += [
                f"ip address add {here}/24 dev {letter}{path}",
                f"ip link set {letter}{path} up",
                f"ip route add {other} via {there} dev {letter}{path} src {own} table {table}",
            ]
            if self._emulator is not None:
                # The emulator carries packets as they are: no larger than the link's, sums filled in.
                commands.append(f"ethtool -K {letter}{path} tx off")
        commands.append(f"ip rule add ipproto tcp {direction} {ports} lookup 101")
        for command in commands:
            self._run(side, command)
        for interface in ("all", f"{letter}0", f"{letter}1"):
            self._run(side, f"sysctl -qw net.ipv4.conf.{interface}.rp_filter=0")

    def command(self, side: int, words: list[str]) -> list[str]:
        """Return `words` as a command that runs on a side."""
        holder = self._holders[side]
        return within(None if holder is None else holder.pid, words)

    def carried_bytes(self) -> list[int]:
        """Return what each path has carried from near to far."""
        shown = self._run(0, "ip -s -j link show")
        links = {link["ifname"]: link for link in json.loads(shown)}
        return [links[f"a{path}"]["stats64"]["tx"]["bytes"] for path in range(PATHS)]

    def close(self) -> None:
        """Let the namespaces go, and the paths with them; every step is taken whatever fails before."""
        with contextlib.ExitStack() as steps:
            for holder in self._holders:
                if holder is not None:
                    steps.callback(_end, holder)
            for wire in self._wires:
                steps.callback(self._take_apart, wire)

    def _take_apart(self, wire: str) -> None:
        assert self._emulator is not None
        # Where the emulator died, or never had the wire, the run has failed for it already.
        with contextlib.suppress(LinkError):
            self._emulator.remove(wire)
        for end in "ab":
            # The kernel takes its time with a namespace that nobody holds, and the names are used again.
            remove_interface(f"{wire}{end}")

    def _run(self, side: int | None, command: str) -> str:
        words = command.split()
        return run(words if side is None else self.command(side, words))


def _end(holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.communicate()


def _namespace() -> subprocess.Popen[bytes]:
    """Return a process that holds a new network namespace until it is killed."""
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    return holder
