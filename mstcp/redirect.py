"""`mstcp run`: an unmodified program whose TCP connections go over MSTCP.

The program is started with a library (crates/mstcp-shim, by LD_PRELOAD) that asks here before each connect,
and connects to a port of ours if the destination is to go over MSTCP. The library's source has the messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mstcp.bypass import BypassWatch
from mstcp.endpoints import Rule, plain_address
from mstcp.errors import MstcpError, sentence
from mstcp.preamble import Destination, DestinationRefused
from mstcp.proxy import SharedUpstream, Upstream
from mstcp.relay import LIMIT_BYTES, Pair, Tasks, abort, relay

SHIM = Path(__file__).resolve().parent / "libmstcp_shim.abi3.so"
_REQUEST_BYTES = 20
_CLAIM_S = 10.0
"""How long an open connection waits for the program to connect to us."""
_ACCEPTING_TURNS = 20
"""Turns of the event loop after which connections that were made before are taken up."""
_PATIENCE_S = 1.0
"""After so long one is told why the end takes time."""
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class ShimMissing(MstcpError):
    """The library for LD_PRELOAD was not built."""

    def __str__(self) -> str:
        return f"{SHIM} is missing: run `make setup` in a checkout, or install mstcp again elsewhere"


class Redirector:
    """Carries connections of programs that ask the library's questions.

    Args:
        upstream: The far proxy.
        rules: Destinations that go over MSTCP; None: all but loopback.
        report: Gets a sentence for each connection that fails.
    """

    def __init__(
        self,
        upstream: Upstream | SharedUpstream,
        rules: Sequence[Rule] | None,
        report: Callable[[str], None],
    ) -> None:
        self._upstream = upstream
        self._rules = rules
        self._report = report
        self._ports: dict[int, int] = {}
        # By family and the program's port: what is being opened for it.
        self._opening: dict[tuple[int, int], asyncio.Task[Pair]] = {}
        self._tasks = Tasks(self._told)
        self._connections = Tasks(self._told)
        self._left = asyncio.Event()
        self._stack = contextlib.AsyncExitStack()
        self.carried = 0

    async def start(self, folder: Path) -> Path:
        """Listen; return the path of the Unix socket for the library, in `folder`."""
        await self._stack.enter_async_context(self._tasks)
        await self._stack.enter_async_context(self._connections)
        for family, host in ((4, "127.0.0.1"), (6, "::1")):
            with contextlib.suppress(OSError):  # no IPv6 here: nothing to lead
                server = await asyncio.start_server(self._on_connected, host, 0, limit=LIMIT_BYTES)
                self._stack.callback(server.close)
                self._ports[family] = server.sockets[0].getsockname()[1]
        path = folder / "run"
        asked = await asyncio.start_unix_server(self._on_asked, str(path))
        self._stack.callback(asked.close)
        return path

    async def finish(self) -> None:
        """Bring over what the program, which has ended, has sent; wait for connections of its children."""
        for _ in range(_ACCEPTING_TURNS):
            await asyncio.sleep(0)
        self._left.set()
        await self._connections.ended()
        await self._upstream.close()

    @property
    def open(self) -> int:
        """How many connections are carried now."""
        return len(self._connections)

    async def stop(self) -> None:
        """Stop listening and break what is still open."""
        for task in self._opening.values():
            task.cancel()
        await self._stack.aclose()
        await self._upstream.close()

    # --- the library's questions ----------------------------------------------------------------------------
    def _on_asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start(self._answer(reader, writer))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            message = await reader.readexactly(_REQUEST_BYTES)
            family, waits = message[0], bool(message[1])
            port = int.from_bytes(message[2:4], "big")
            address = str(ipaddress.ip_address(message[4 : 8 if family == 4 else 20]))
            ours = self._ports.get(family)
            if ours is None or not self.is_wanted(address, port):
                writer.write(b"\0\0\0")
                return
            writer.write(b"\1" + ours.to_bytes(2, "big"))
            bound = int.from_bytes(await reader.readexactly(2), "big")
            number = await self._open((family, bound), Destination(str(plain_address(address)), port), waits)
            writer.write(number.to_bytes(4, "big"))
        except (asyncio.IncompleteReadError, ValueError):
            pass  # the program ended meanwhile
        finally:
            writer.close()

    def is_wanted(self, address: str, port: int) -> bool:
        """Return whether connections to a destination are to go over MSTCP."""
        if self._rules is None:
            return not plain_address(address).is_loopback
        return any(rule.fits(address, port) for rule in self._rules)

    def is_past(self, address: str, port: int) -> bool:
        """Return whether a connection of the program's to that end has passed us by."""
        is_ours = plain_address(address).is_loopback and port in self._ports.values()
        return not is_ours and self.is_wanted(address, port)

    async def _open(self, key: tuple[int, int], to: Destination, waits: bool) -> int:
        """Begin to open a connection, and wait for it if the program does; return 0 or the errno."""
        if key in self._opening:
            return 0  # it asks again about a connect that it began
        task = asyncio.ensure_future(self._upstream.open(to))
        self._opening[key] = task
        if waits:
            try:
                await asyncio.shield(task)
            except (MstcpError, OSError) as error:
                self._opening.pop(key, None)
                self._told(error)
                return _errno_of(error)
        self._tasks.start(self._drop_unclaimed(key, task))
        return 0

    async def _drop_unclaimed(self, key: tuple[int, int], task: asyncio.Task[Pair]) -> None:
        await asyncio.sleep(_CLAIM_S)
        if self._opening.get(key) is task:
            del self._opening[key]
            abort(await task)

    # --- the program's connections --------------------------------------------------------------------------
    def _on_connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.start(self._carry((reader, writer)))

    async def _carry(self, inner: Pair) -> None:
        sock: socket.socket = inner[1].get_extra_info("socket")
        family = 4 if sock.family == socket.AF_INET else 6
        task = self._opening.pop((family, inner[1].get_extra_info("peername")[1]), None)
        if task is None:
            abort(inner)
            return
        try:
            outer = await task
        except BaseException:
            abort(inner)
            raise
        self.carried += 1
        await relay(inner, outer, self._left)

    def _told(self, error: BaseException) -> None:
        self._report(f"a connection failed: {sentence(error)}")


def _errno_of(error: BaseException) -> int:
    if isinstance(error, DestinationRefused):
        return error.errno
    number = error.errno if isinstance(error, OSError) else None
    return number if number and number > 0 else errno.ECONNREFUSED


async def run(
    command: Sequence[str],
    upstream: Upstream | SharedUpstream,
    rules: Sequence[Rule] | None,
    report: Callable[[str], None],
    environment: Mapping[str, str],
) -> int:
    """Run a command whose TCP connections go over MSTCP; return its exit status, 128 + n for signal n.

    Raises:
        ShimMissing: The library was not built.
        OSError: The command cannot be run.
    """
    if not SHIM.exists():
        raise ShimMissing
    folder = Path(tempfile.mkdtemp(prefix="mstcp-run-"))
    redirector = Redirector(upstream, rules, report)
    try:
        path = await redirector.start(folder)
        preload = " ".join(filter(None, [str(SHIM), environment.get("LD_PRELOAD")]))
        led = {**environment, "LD_PRELOAD": preload, "MSTCP_RUN": str(path)}
        status = await _wait_for(command, led, redirector.is_past, report)
        if not await _finish(redirector, report):
            return 128 + signal.SIGINT
        if not redirector.carried:
            report(
                "the command opened no connection over MSTCP (programs without libc's connect, "
                "as static ones, and setuid programs cannot be led)"
            )
        return status
    finally:
        await redirector.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def _finish(redirector: Redirector, report: Callable[[str], None]) -> bool:
    """Wait until what the command sent has come over; False if a signal ended that."""
    loop = asyncio.get_running_loop()
    finishing = asyncio.ensure_future(redirector.finish())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, finishing.cancel)
    try:
        await asyncio.wait([finishing], timeout=_PATIENCE_S)
        if not finishing.done():
            report(
                "the command has ended; what it sent is still on its way, or children of it have connections "
                f"({redirector.open} open): Ctrl-C breaks them off"
            )
        await asyncio.wait([finishing])
    finally:
        finishing.cancel()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return not finishing.cancelled()


async def _wait_for(
    command: Sequence[str],
    environment: Mapping[str, str],
    is_wanted: Callable[[str, int], bool],
    report: Callable[[str], None],
) -> int:
    """Run a command in our place: the terminal's signals go to it, others are passed on."""
    loop = asyncio.get_running_loop()
    process = await asyncio.create_subprocess_exec(*command, env=dict(environment))
    watching = asyncio.ensure_future(BypassWatch(process.pid, is_wanted, report).run())

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
        watching.cancel()
        for number in (signal.SIGINT, signal.SIGQUIT, *_FORWARDED):
            loop.remove_signal_handler(number)
        if process.returncode is None:
            process.kill()
            await process.wait()
    return status if status >= 0 else 128 - status
