"""Runs the programs that build networks (ip, tc, ethtool, sysctl), with their failures as errors."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from topologies.errors import CommandFailed

TIMEOUT_S = 30.0
IPV6_SETTINGS = Path("/proc/sys/net/ipv6/conf")


def run(command: Sequence[str], standard_input: str = "") -> str:
    """Run a command and return what it printed.

    Raises:
        CommandFailed: it is not installed, failed, or took longer than 30 s.
    """
    try:
        done = subprocess.run(
            command, input=standard_input, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except FileNotFoundError:
        raise CommandFailed(command, f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise CommandFailed(command, f"no answer within {TIMEOUT_S:g} s") from None
    if done.returncode:
        script = f" (input: {'; '.join(standard_input.splitlines())})" if standard_input else ""
        raise CommandFailed(command, done.stderr.strip() + script)
    return done.stdout


def within(pid: int | None, command: Sequence[str]) -> list[str]:
    """Return the command to run in the network namespace of a process; None is the current namespace."""
    return list(command) if pid is None else ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *command]


def ip(lines: Iterable[str], pid: int | None = None) -> None:
    """Run lines of `ip` in one go; the first that fails ends it.

    Raises:
        CommandFailed: with the line's complaint.
    """
    run(within(pid, ["ip", "-batch", "-"]), "".join(f"{line}\n" for line in lines))


def disable_ipv6(interfaces: Iterable[str]) -> None:
    """Keep interfaces of the current namespace from sending IPv6 chatter; call it before they are up."""
    for interface in interfaces:
        setting = IPV6_SETTINGS / interface / "disable_ipv6"
        if setting.exists():
            setting.write_text("1\n")


def remove_interface(interface: str, pid: int | None = None) -> None:
    """Remove an interface if it, and the process that holds its namespace, are still there."""
    try:
        ip([f"link del dev {interface}"], pid)
    except CommandFailed as failure:
        if "Cannot find device" not in failure.output and "No such file" not in failure.output:
            raise
