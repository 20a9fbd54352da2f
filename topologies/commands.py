"""Runs the programs that build networks (ip, tc, ethtool, sysctl), with their failures as errors."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

from topologies.errors import CommandFailed

T = TypeVar("T")

TIMEOUT_S = 30.0
IPV6_SETTINGS = Path("/proc/sys/net/ipv6/conf")
REMOVAL_GROUP = 0x6D737463
"""The group that interfaces are put into to be removed: together they take a tenth of the time."""
_libc = ctypes.CDLL(None, use_errno=True)


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


def run_in_namespaces(scripts: Mapping[int, str]) -> None:
    """Run a shell script in the network namespace of each process, all at once.

    Args:
        scripts: by process id; the first command that fails ends its script.

    Raises:
        CommandFailed: with the complaint of one that failed; all have ended.
    """
    commands = {pid: within(pid, ["sh", "-eu", "-c", script]) for pid, script in scripts.items()}
    running = {
        pid: subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for pid, command in commands.items()
    }
    failures: list[CommandFailed] = []
    for pid, process in running.items():
        try:
            _, complaint = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            complaint = f"no answer within {TIMEOUT_S:g} s"
        if process.returncode:
            failures.append(CommandFailed(commands[pid], complaint.strip()))
    if failures:
        raise failures[0]


def join_namespace(pid: int, kind: Literal["net", "mnt"]) -> None:
    """Let this thread join a namespace of a process (setns(2)); raises OSError."""
    descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
    try:
        if _libc.setns(descriptor, 0):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), f"namespace {kind} of process {pid}")
    finally:
        os.close(descriptor)


def in_namespace(pid: int, call: Callable[[], T]) -> T:
    """Return what a function returns in the network namespace of a process (OSError)."""

    def joined() -> T:
        join_namespace(pid, "net")
        return call()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(joined).result()


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


def interface_names() -> set[str]:
    """Return the names of the interfaces of the current namespace."""
    return {name for _, name in socket.if_nameindex()}


def remove_interfaces(interfaces: Iterable[str]) -> None:
    """Remove those of the interfaces that the current namespace has, all at once."""
    there = interface_names()
    lines = [f"link set dev {name} group {REMOVAL_GROUP}" for name in interfaces if name in there]
    if lines:
        ip([*lines, f"link del group {REMOVAL_GROUP}"])


def remove_interface(interface: str, pid: int | None = None) -> None:
    """Remove an interface if it, and the process that holds its namespace, are still there."""
    try:
        ip([f"link del dev {interface}"], pid)
    except CommandFailed as failure:
        if "Cannot find device" not in failure.output and "No such file" not in failure.output:
            raise
