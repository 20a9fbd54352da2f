"""Programs that connect by libc's `connect`: a library in LD_PRELOAD asks here before each.

The library (crates/mstcp-shim) connects to a port of ours if the destination is to go over MSTCP; its source
has the messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mstcp.endpoints import Destination, plain_address
from mstcp.errors import MstcpError
from mstcp.tools.bypass import BypassWatch
from mstcp.tools.carrier import Carrier, Started
from mstcp.tools.preamble import DestinationRefused
from mstcp.tools.relay import LIMIT_BYTES, Pair, Tasks, abort

SHIM = Path(__file__).resolve().parents[1] / "libmstcp_shim.abi3.so"
_REQUEST_BYTES = 20
_CLAIM_S = 10.0
"""How long an open connection waits for the program to connect to us."""


class ShimMissing(MstcpError):
    """The library for LD_PRELOAD was not built."""

    def __str__(self) -> str:
        return f"{SHIM} is missing: run `make setup` in a checkout, or install mstcp again elsewhere"


class Preload:
    """Answers the library's questions; an asynchronous context manager.

    Args:
        carrier: Gets the program's connections.
    """

    hint = " (if it makes system calls of its own: --intercept namespace)"
    """What may help a command that opened no connection."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._ports: dict[int, int] = {}
        # By family and the program's port: what is being opened for it.
        self._opening: dict[tuple[int, int], asyncio.Task[Pair]] = {}
        self._tasks = Tasks(carrier.failed)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Preload:
        if not SHIM.exists():
            raise ShimMissing
        await self._stack.enter_async_context(self._tasks)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._opening.values():
            task.cancel()
        await self._stack.aclose()

    async def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Started:
        """Listen and start a command.

        Raises:
            OSError: It cannot be run.
        """
        folder = Path(tempfile.mkdtemp(prefix="mstcp-run-"))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for family, host in ((4, "127.0.0.1"), (6, "::1")):
            with contextlib.suppress(OSError):  # no IPv6 here
                server = await asyncio.start_server(self._on_connected, host, 0, limit=LIMIT_BYTES)
                self._stack.callback(server.close)
                self._ports[family] = server.sockets[0].getsockname()[1]
        path = folder / "run"
        asked = await asyncio.start_unix_server(self._on_asked, str(path))
        self._stack.callback(asked.close)
        libraries = " ".join(filter(None, [str(SHIM), environment.get("LD_PRELOAD")]))
        led = {**environment, "LD_PRELOAD": libraries, "MSTCP_RUN": str(path)}
        process = await asyncio.create_subprocess_exec(*command, env=led)
        watch = asyncio.ensure_future(BypassWatch(process.pid, self._is_past, self._carrier.report).run())
        self._stack.callback(watch.cancel)
        return Started(process)

    def _is_past(self, address: str, port: int) -> bool:
        """Return whether a connection of the program's to that end has passed us by."""
        is_ours = plain_address(address).is_loopback and port in self._ports.values()
        return not is_ours and self._carrier.is_wanted(address, port)

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
            if ours is None or not self._carrier.is_wanted(address, port):
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

    async def _open(self, key: tuple[int, int], to: Destination, waits: bool) -> int:
        """Begin to open a connection, and wait for it if the program does; return 0 or the errno."""
        if key in self._opening:
            return 0  # it asks again about a connect that it began
        task = asyncio.ensure_future(self._carrier.open(to))
        self._opening[key] = task
        if waits:
            try:
                await asyncio.shield(task)
            except (MstcpError, OSError) as error:
                self._opening.pop(key, None)
                self._carrier.failed(error)
                return _errno_of(error)
        self._tasks.start(self._drop_unclaimed(key, task))
        return 0

    async def _drop_unclaimed(self, key: tuple[int, int], task: asyncio.Task[Pair]) -> None:
        await asyncio.sleep(_CLAIM_S)
        if self._opening.get(key) is task:
            del self._opening[key]
            abort(await task)

    def _on_connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        family = 4 if sock.family == socket.AF_INET else 6
        task = self._opening.pop((family, writer.get_extra_info("peername")[1]), None)
        if task is None:
            abort((reader, writer))
        else:
            self._carrier.carry((reader, writer), task)


def _errno_of(error: BaseException) -> int:
    if isinstance(error, DestinationRefused):
        return error.errno
    number = error.errno if isinstance(error, OSError) else None
    return number if number and number > 0 else errno.ECONNREFUSED
