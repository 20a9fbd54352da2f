"""The first program in the network namespace of `mstcp run`: sets it up and becomes the command.

    python -I namespace_child.py FD REDIRECTED -- COMMAND [ARGUMENT ...]

TCP connections there, but those to loopback, are led to listening sockets, and what is sent to name servers
to others; these are handed out over the Unix socket FD. REDIRECTED are conditions of nftables(8), one a line,
for destinations on loopback that are led there too. It imports the standard library alone: its folder is not
on the path.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
"""CLONE_NEWUSER and CLONE_NEWNET of unshare(2)."""
_BACKLOG = 1024
# The command's own addresses are the dummy of RFC 7600 and one that RFC 6666 discards.
_RULES = """
table inet mstcp {{
    chain redirected {{
        type nat hook output priority -100
        udp dport 53 redirect to :{port}
        tcp dport 53 redirect to :{port}
        {redirected}
        ip daddr {{ 127.0.0.0/8, 192.0.0.8 }} return
        ip6 daddr {{ ::1, 100::1 }} return
        meta l4proto tcp redirect to :{port}
    }}
    chain refused {{
        type filter hook output priority 0
        ip daddr {{ 127.0.0.0/8, 192.0.0.8 }} accept
        ip6 daddr {{ ::1, 100::1 }} accept
        meta l4proto != tcp reject
    }}
}}
"""


def main(arguments: list[str]) -> None:
    """Set the namespace up, hand the sockets out and become the command; tell the other end what fails."""
    channel, redirected, command = socket.socket(fileno=int(arguments[0])), arguments[1], arguments[3:]
    channel.set_inheritable(False)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        user, group = os.geteuid(), os.getegid()
        is_users = _enter(user, group)
        listening = _set_up(redirected)
        if is_users:
            # The command is who it was, and has no right to change the rules.
            _unshare(_NEW_USER)
            _map(user, group, 0, 0)
        socket.send_fds(channel, [b"."], [sock.fileno() for sock in listening])
        for sock in listening:
            sock.close()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 (the arguments are a list already)
    except OSError as error:
        channel.send(b"!" + (error.strerror or str(error)).encode())
        sys.exit(1)


def _enter(user: int, group: int) -> bool:
    """Make the namespace; return whether it belongs to a user namespace of its own."""
    if user == 0:
        with contextlib.suppress(PermissionError):
            _unshare(_NEW_NETWORK)
            return False
    _unshare(_NEW_USER | _NEW_NETWORK)
    Path("/proc/self/setgroups").write_text("deny")
    _map(0, 0, user, group)
    return True


def _unshare(kinds: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(kinds):
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")


def _map(user: int, group: int, outer_user: int, outer_group: int) -> None:
    Path("/proc/self/gid_map").write_text(f"{group} {outer_group} 1")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1")


def _set_up(redirected: str) -> list[socket.socket]:
    """Lead the namespace's connections to sockets, and return these: TCP and UDP, for IPv4 and maybe IPv6."""
    _call("ip", "link", "set", "lo", "up")
    _call("ip", "-4", "address", "add", "192.0.0.8/32", "dev", "lo")
    _call("ip", "-4", "route", "add", "default", "dev", "lo")
    with contextlib.suppress(OSError):  # no IPv6 here
        _call("ip", "-6", "address", "add", "100::1/128", "dev", "lo")
        _call("ip", "-6", "route", "add", "default", "dev", "lo")
    listening = [socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)]
    port = listening[0].getsockname()[1]
    listening.append(_bound(socket.AF_INET, "127.0.0.1", port))
    with contextlib.suppress(OSError):
        listening.append(socket.create_server(("::1", port), family=socket.AF_INET6, backlog=_BACKLOG))
        listening.append(_bound(socket.AF_INET6, "::1", port))
    conditions = "\n".join(f"{each} redirect to :{port}" for each in redirected.splitlines())
    _call("nft", "-f", "-", given=_RULES.format(port=port, redirected=conditions))
    return listening


def _bound(family: int, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.bind((host, port))
    return sock


def _call(*command: str, given: str = "") -> None:
    """Run a program; OSError with what it complains of."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    try:
        done = subprocess.run(
            command, input=given, text=True, capture_output=True, check=False, env={"PATH": path}
        )
    except FileNotFoundError:
        raise OSError(errno.ENOENT, f"{command[0]} is missing (apt-get install nftables iproute2)") from None
    if done.returncode:
        raise OSError(errno.EPERM, f"{command[0]}: {done.stderr.strip().splitlines()[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
