"""A server of MSTCP connections that sends back what comes, and notes what happened to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import mstcp
from mstcp import MstcpError


class EchoServer:
    """What an MSTCP server is given: `echo` as its handler, `on_rejected` as its witness."""

    def __init__(self) -> None:
        self.rejected: list[str] = []
        self.protocols: list[str] = []
        self.errors: list[BaseException] = []
        self.port = 0
        self.open = 0

    def on_rejected(self, error: MstcpError, peer: Any) -> None:
        self.rejected.append(str(error))

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.protocols.append(writer.get_extra_info("protocol"))
        try:
            while chunk := await reader.read(1 << 16):
                writer.write(chunk)
                await writer.drain()
        except MstcpError as error:
            self.errors.append(error)
        except asyncio.CancelledError:  # the loop ends: the garbage collector would complain of what is open
            writer.transport.abort()
            raise
        writer.close()
        with contextlib.suppress(MstcpError):
            await writer.wait_closed()
        self.open -= 1


@contextlib.asynccontextmanager
async def echo_server(**options: Any) -> AsyncIterator[EchoServer]:
    """Run one on loopback."""
    echo = EchoServer()
    options = {"on_rejected": echo.on_rejected} | options
    async with await mstcp.start_server(echo.echo, "127.0.0.1", **options) as server:
        echo.port = server.sockets[0].getsockname()[1]
        yield echo
