"""`mstcp run`: an unmodified program whose TCP connections go over MSTCP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from mstcp.endpoints import Rule
from mstcp.errors import MstcpError
from mstcp.tools.carrier import Carrier
from mstcp.tools.executables import uses_libc
from mstcp.tools.namespace import Namespace
from mstcp.tools.preload import Preload
from mstcp.tools.proxy import SharedUpstream, Upstream

_TIMEOUT_S = 1.0
"""After this time the user is told why stopping takes time."""
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Interception(Enum):
    """How a program's connections are intercepted."""

    PRELOAD = "preload"
    """By a library that it loads: for programs that connect by libc; they see errors as without us."""
    NAMESPACE = "namespace"
    """By a network namespace: for all programs, where the system allows one."""


class NamespaceRefused(MstcpError):
    """A command cannot have a network namespace, or cannot be run there."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"no network namespace for the command ({self.reason}): have user namespaces allowed, or run as "
            "root; a program that connects by libc needs none (--intercept preload)"
        )


async def run(
    command: Sequence[str],
    upstream: Upstream | SharedUpstream,
    rules: Sequence[Rule] | None,
    report: Callable[[str], None],
    environment: Mapping[str, str],
    interception: Interception | None = None,
) -> int:
    """Run a command whose TCP connections go over MSTCP; return its exit status, 128 + n for signal n.

    Args:
        command: It and its arguments.
        upstream: The far proxy.
        rules: Destinations that go over MSTCP; None: all but loopback.
        report: Gets a sentence for what fails.
        environment: The command's.
        interception: How its connections are intercepted; None: as its file needs it.

    Raises:
        ShimMissing: The library was not built.
        NamespaceRefused: The command needs a network namespace and cannot have one.
        OSError: The command cannot be run.
    """
    if interception is None:
        interception = Interception.PRELOAD if uses_libc(command[0]) else Interception.NAMESPACE
    carrier = Carrier(upstream, rules, report)
    front = Namespace(carrier) if interception is Interception.NAMESPACE else Preload(carrier)
    try:
        async with front:
            started = await front.start(command, environment)
            status = await _wait_for(started.process)
            if refusal := started.refusal():
                raise NamespaceRefused(refusal)
            if not await _finish(carrier, report):
                return 128 + signal.SIGINT
            if not carrier.opened:
                report(f"the command opened no connection over MSTCP{front.hint}")
            return status
    finally:
        await carrier.stop()


async def _finish(carrier: Carrier, report: Callable[[str], None]) -> bool:
    """Wait until what the command sent has come over; False if a signal ended that."""
    loop = asyncio.get_running_loop()
    finishing = asyncio.ensure_future(carrier.finish())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, finishing.cancel)
    try:
        await asyncio.wait([finishing], timeout=_TIMEOUT_S)
        if not finishing.done():
            report(
                "the command has ended; what it sent is still on its way, or children of it have connections "
                f"({carrier.open_connections} open): Ctrl-C breaks them off"
            )
        await asyncio.wait([finishing])
    finally:
        finishing.cancel()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return not finishing.cancelled()


async def _wait_for(process: asyncio.subprocess.Process) -> int:
    """Wait for a command that runs in our place: the terminal's signals go to it, others are passed on."""
    loop = asyncio.get_running_loop()

    def forward(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)

    # Ctrl-C goes to the whole foreground group: the command decides what it means.
    for number in (signal.SIGINT, signal.SIGQUIT):
        loop.add_signal_handler(number, lambda: None)
    for number in _FORWARDED:
        loop.add_signal_handler(number, forward, number)
    try:
        status = await process.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGQUIT, *_FORWARDED):
            loop.remove_signal_handler(number)
        if process.returncode is None:
            process.kill()
            await process.wait()
    return status if status >= 0 else 128 - status
