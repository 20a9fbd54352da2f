"""A host with two uplinks to a server, which lose their addresses and get others; each host is a namespace.

`build` makes them of the namespace that it is called in, which must be a fresh one.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

import mstcp
from topologies.commands import run, within

SERVER = "10.9.0.1"
ECHO_PORT, POUR_PORT = 9000, 9001
UPLINKS = (1, 2)
PIECE_BYTES = 1 << 16
USED_BYTES = 1 << 16
"""A stream that has carried this much is used."""
LIMIT_S = 20.0
_CLONE_NEWNET = 0x40000000


def sh(command: str, *, server: int | None = None) -> None:
    """Run a command here, or in the namespace of the server's process."""
    run(within(server, command.split()))


def unshare_network() -> None:
    """Give this process a network namespace of its own (OSError: the kernel refuses it)."""
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "a network namespace needs root")


def address(uplink: int, number: int) -> str:
    """Return an address of an uplink; number 1 is its gateway's."""
    return f"10.{uplink}.0.{number}"


def give(uplink: int, number: int) -> None:
    """Give an uplink an address and a route, as DHCP does."""
    sh(f"ip addr add {address(uplink, number)}/24 dev up{uplink}")
    sh(f"ip route replace {SERVER} via {address(uplink, 1)} dev up{uplink} metric {uplink}")


def take_away(uplink: int, number: int) -> None:
    """Take an uplink's address away, and its routes with it."""
    sh(f"ip addr del {address(uplink, number)}/24 dev up{uplink}")


def build(shapes: Sequence[str] = (), **options: Any) -> int:
    """Make the server's namespace and two uplinks to it; return the server's process.

    Args:
        shapes: Of each uplink, both directions alike, in netem's words; none: as fast as the machine.
        options: Of the servers.
    """
    ready, told = os.pipe()
    server = os.fork()
    if server == 0:
        os.close(ready)
        try:
            unshare_network()
            os.write(told, b"n")
            while subprocess.run(["ip", "addr", "show", "to", SERVER], capture_output=True).stdout == b"":
                time.sleep(0.01)
            asyncio.run(_serve(told, options))
        finally:
            os._exit(1)
    os.close(told)
    os.read(ready, 1)
    for uplink in UPLINKS:
        sh(f"ip link add up{uplink} type veth peer name down{uplink} netns {server}")
        sh(f"ip link set up{uplink} up")
        sh(f"ip link set down{uplink} up", server=server)
        sh(f"ip addr add {address(uplink, 1)}/24 dev down{uplink}", server=server)
        give(uplink, 2)
    for uplink, shape in zip(UPLINKS, shapes, strict=bool(shapes)):
        sh(f"tc qdisc add dev up{uplink} root netem {shape}")
        sh(f"tc qdisc add dev down{uplink} root netem {shape}", server=server)
    sh("sysctl -qw net.ipv4.conf.all.rp_filter=2")
    sh("sysctl -qw net.ipv4.conf.all.rp_filter=2", server=server)
    sh("ip link set lo up", server=server)
    sh(f"ip addr add {SERVER}/32 dev lo", server=server)
    os.read(ready, 1)
    os.close(ready)
    return server


async def _serve(told: int, options: dict[str, Any]) -> None:
    """Serve until the process is killed: one port sends back what comes, the other sends by itself."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE_BYTES):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        data = random.Random(1)
        while True:
            writer.write(data.randbytes(PIECE_BYTES))
            await writer.drain()

    async with (
        await mstcp.start_server(echo, SERVER, ECHO_PORT, plain=False, **options) as first,
        await mstcp.start_server(pour, SERVER, POUR_PORT, plain=False, **options),
    ):
        os.write(told, b"s")
        await first.serve_forever()


class Transfer:
    """A connection whose peer sends bytes that are known, by itself or back, which are compared.

    Attributes:
        pause_s: The longest time in which nothing came.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: mstcp.StreamWriter, echoes: bool) -> None:
        self.transport = writer.transport
        self.pause_s = 0.0
        self._reader, self._writer = reader, writer
        self._came_s = time.monotonic()
        self._expected = random.Random(1)
        self._rest = b""
        self._writing = asyncio.ensure_future(self._write()) if echoes else None

    async def _write(self) -> None:
        data = random.Random(1)
        while True:
            self._writer.write(data.randbytes(PIECE_BYTES))
            await self._writer.drain()

    async def close(self) -> None:
        """Give the connection up."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        self.transport.abort()
        await self.transport.wait_closed()

    async def some(self) -> None:
        """Have bytes come, and compare them (RuntimeError: they are others, or none come)."""
        data = await asyncio.wait_for(self._reader.read(PIECE_BYTES), LIMIT_S)
        if len(self._rest) < len(data):
            self._rest += self._expected.randbytes(PIECE_BYTES)
        expected, self._rest = self._rest[: len(data)], self._rest[len(data) :]
        if not data or data != expected:
            raise RuntimeError("other bytes came" if data else "the connection has ended")
        now_s = time.monotonic()
        self.pause_s = max(self.pause_s, now_s - self._came_s)
        self._came_s = now_s

    async def go_on(self, seconds: float) -> None:
        """Go on for this long."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            await self.some()

    async def until(self, what: str, holds: Callable[[], bool]) -> float:
        """Go on until this holds; return how long that took (RuntimeError: it does not come to it)."""
        began_s = time.monotonic()
        while not holds():
            await self.some()
            if time.monotonic() > began_s + LIMIT_S:
                raise RuntimeError(f"{what}: {self.transport.stats()}")
        return time.monotonic() - began_s

    async def until_used(self, addresses: set[str]) -> float:
        """Go on until these, and no others, are used; return how long that took."""
        waited_s = await self.until("streams", lambda: self._carried().keys() == addresses)
        before = self._carried()

        def are_used() -> bool:
            now = self._carried()
            return all(now.get(host, 0) >= before.get(host, 0) + USED_BYTES for host in addresses)

        return waited_s + await self.until("all used", are_used)

    def _carried(self) -> dict[str, int]:
        """Return what the streams that are alive have carried, by their own addresses."""
        sockets = self.transport.get_extra_info("sockets")
        stats = self.transport.stats().streams
        return {
            sock.getsockname()[0]: stream.carried.bytes_sent + stream.carried.bytes_received
            for sock, stream in zip(sockets, stats, strict=True)
            if stream.is_alive and sock.fileno() >= 0
        }


async def open_transfer(echoes: bool, **options: Any) -> Transfer:
    """Open a connection to the server that `build` made."""
    port = ECHO_PORT if echoes else POUR_PORT
    reader, writer = await mstcp.open_connection(SERVER, port, **options)
    return Transfer(reader, writer, echoes)


async def move_uplinks(
    echoes: bool, *, order: Sequence[int] = UPLINKS, rest_s: Sequence[float] = (0.0,) * 4, **options: Any
) -> dict[str, Any]:
    """Take each uplink's address away under a transfer, and give it another; return what that cost.

    Args:
        echoes: Bytes go both ways, else to this host alone.
        order: Which uplink goes first.
        rest_s: How long the transfer goes on before each change, with what it then has.
        options: Of the connection.

    Raises:
        RuntimeError: Bytes were lost, or uplinks are not used.
    """
    transfer = await open_transfer(echoes, paths="interfaces", **options)
    own = {uplink: address(uplink, 2) for uplink in UPLINKS}
    await transfer.until_used(set(own.values()))
    transfer.pause_s = 0.0
    reuse_s = []
    rests = iter(rest_s)
    for uplink in order:
        await transfer.go_on(next(rests))
        take_away(uplink, 2)
        del own[uplink]
        await transfer.until_used(set(own.values()))
        await transfer.go_on(next(rests))
        give(uplink, 3)
        own[uplink] = address(uplink, 3)
        reuse_s.append(await transfer.until_used(set(own.values())))
    await transfer.close()
    return {"pause_s": transfer.pause_s, "reuse_s": reuse_s}
