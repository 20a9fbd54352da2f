"""Two namespaces and two veth pairs between them; whatever is made here ends with this process.

The far namespace is that of a process of ours. Each host has an address of its own beside those of its
interfaces; source ports from `SECOND_PATH_PORT` on take the second pair, as a controller would have it.
"""

from __future__ import annotations

import json
import subprocess

NEAR, FAR = "10.77.9.1", "10.77.9.2"
FIRST_PATH_PORT, SECOND_PATH_PORT = 40000, 41000
PATHS = 2


def path_address(path: int, side: int) -> str:
    """Return the address of a side (0 near, 1 far) on a path."""
    return f"10.77.{path}.{side + 1}"


class Network:
    """The paths between this process's namespace, which must be a fresh one, and a new far one."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()
        for path in range(PATHS):
            self._run(0, f"ip link add a{path} type veth peer name b{path} netns {self._holder.pid}")
        for side, name, own, other in ((0, "a", NEAR, FAR), (1, "b", FAR, NEAR)):
            self._set_up(side, name, own, other)
        self._run(0, "ip mptcp limits set subflow 1 add_addr_accepted 1")
        self._run(1, "ip mptcp limits set subflow 1 add_addr_accepted 1")
        self._run(1, f"ip mptcp endpoint add {path_address(1, 1)} dev b1 signal")

    def _set_up(self, side: int, name: str, own: str, other: str) -> None:
        ports = f"{SECOND_PATH_PORT}-{SECOND_PATH_PORT + 999}"
        direction = "dport" if side else "sport"
        commands = ["ip link set lo up", f"ip address add {own}/32 dev lo"]
        for path in range(PATHS):
            here, there = path_address(path, side), path_address(path, 1 - side)
            table = "main" if path == 0 else str(100 + path)
            commands += [
                f"ip address add {here}/24 dev {name}{path}",
                f"ip link set {name}{path} up",
                f"ip route add {other} via {there} dev {name}{path} src {own} table {table}",
            ]
        commands.append(f"ip rule add ipproto tcp {direction} {ports} lookup 101")
        for command in commands:
            self._run(side, command)
        for interface in ("all", f"{name}0", f"{name}1"):
            self._run(side, f"sysctl -qw net.ipv4.conf.{interface}.rp_filter=0")

    def command(self, side: int, words: list[str]) -> list[str]:
        """Return `words` as a command that runs on a side."""
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", *words] if side else words

    def carried_bytes(self) -> list[int]:
        """Return what each path has carried from near to far."""
        shown = self._run(0, "ip -s -j link show")
        links = {link["ifname"]: link for link in json.loads(shown)}
        return [links[f"a{path}"]["stats64"]["tx"]["bytes"] for path in range(PATHS)]

    def close(self) -> None:
        """Let the far namespace go, and the pairs with it."""
        self._holder.kill()
        self._holder.wait()

    def _run(self, side: int, command: str) -> str:
        done = subprocess.run(self.command(side, command.split()), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"`{command}` failed: {done.stderr.strip()}")
        return done.stdout
