"""Hosts whose addresses go and come under a transfer, over two uplinks between network namespaces."""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

import mstcp
from mstcp import LocalProtocolError, StreamSpec
from mstcp.aio.streams import StreamWriter
from tests.fakes.waiting import until
from tests.sandbox import run_in_sandbox

SERVER = "10.9.0.1"
PORT = 9000
PIECE_BYTES = 1 << 16
SCHEDULER = "stochastic"
"""Draws the stream of each frame, however fast the first alone would be."""
USED_BYTES = 1 << 18
"""A stream that has carried so much is used."""
LIMIT_S = 20.0
PAUSE_S, REUSE_S = 5.0, 10.0
"""Wide bounds for busy machines: 1 and 2 s are promised."""
CLONE_NEWNET = 0x40000000


def sh(command: str, *, server: int | None = None) -> None:
    """Run a command here, or in the server's namespace."""
    prefix = [] if server is None else ["nsenter", f"--net=/proc/{server}/ns/net"]
    subprocess.run([*prefix, *command.split()], check=True, stdout=subprocess.DEVNULL)


def address(uplink: int, number: int) -> str:
    return f"10.{uplink}.0.{number}"


def give(uplink: int, number: int) -> None:
    """Give an uplink an address and a route, as DHCP does."""
    sh(f"ip addr add {address(uplink, number)}/24 dev up{uplink}")
    route = f"ip route replace {SERVER} via {address(uplink, 1)} dev up{uplink} metric {uplink}"
    sh(route)


def take_away(uplink: int, number: int) -> None:
    sh(f"ip addr del {address(uplink, number)}/24 dev up{uplink}")


def build() -> int:
    """Make the server's namespace and two uplinks to it; return the server's process."""
    ready, told = os.pipe()
    server = os.fork()
    if server == 0:
        os.close(ready)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET):
            os._exit(1)
        os.write(told, b"n")
        while subprocess.run(["ip", "addr", "show", "to", SERVER], capture_output=True).stdout == b"":
            time.sleep(0.01)
        asyncio.run(serve(told))
        os._exit(0)
    os.close(told)
    os.read(ready, 1)
    for uplink in (1, 2):
        sh(f"ip link add up{uplink} type veth peer name down{uplink} netns {server}")
        sh(f"ip link set up{uplink} up")
        sh(f"ip link set down{uplink} up", server=server)
        sh(f"ip addr add {address(uplink, 1)}/24 dev down{uplink}", server=server)
        give(uplink, 2)
    sh("sysctl -qw net.ipv4.conf.all.rp_filter=2")
    sh("sysctl -qw net.ipv4.conf.all.rp_filter=2", server=server)
    sh("ip link set lo up", server=server)
    sh(f"ip addr add {SERVER}/32 dev lo", server=server)
    os.read(ready, 1)
    return server


async def serve(told: int) -> None:
    """Send back what comes, until the process is killed."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE_BYTES):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send pieces of known content without being asked again."""
        del reader
        data = random.Random(1)
        while True:
            writer.write(data.randbytes(PIECE_BYTES))
            await writer.drain()

    async with (
        await mstcp.start_server(echo, SERVER, PORT, plain=False, scheduler=SCHEDULER) as first,
        await mstcp.start_server(pour, SERVER, PORT + 1, plain=False, scheduler=SCHEDULER),
    ):
        os.write(told, b"s")
        await first.serve_forever()


class Transfer:
    """A connection whose peer sends back all that it gets, which is compared.

    Attributes:
        pause_s: The longest time in which nothing came.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: mstcp.StreamWriter, echoes: bool) -> None:
        self.reader, self.writer = reader, writer
        self.transport = writer.transport
        self.pause_s = 0.0
        self._came_s = time.monotonic()
        self._echoes = echoes
        self._data = random.Random(1)

    async def piece(self) -> None:
        """Bring one piece there and back, or have one come."""
        data = self._data.randbytes(PIECE_BYTES)
        if self._echoes:
            self.writer.write(data)
        assert await asyncio.wait_for(self.reader.readexactly(PIECE_BYTES), LIMIT_S) == data
        now_s = time.monotonic()
        self.pause_s = max(self.pause_s, now_s - self._came_s)
        self._came_s = now_s

    async def until(self, what: str, holds: Callable[[], bool]) -> float:
        """Go on until this holds; return how long that took."""
        began_s = time.monotonic()
        while not holds():
            await self.piece()
            assert time.monotonic() < began_s + LIMIT_S, f"{what}: {self.transport.stats()}"
        return time.monotonic() - began_s

    def carried(self) -> dict[str, int]:
        """Return what the streams that are alive have carried, by their own addresses."""
        hosts = [sock and sock.getsockname()[0] for sock in self._sockets()]
        stats = self.transport.stats().streams
        return {
            host: stream.carried.bytes_sent + stream.carried.bytes_received
            for host, stream in zip(hosts, stats, strict=True)
            if stream.is_alive and host is not None
        }

    def _sockets(self) -> list[Any]:
        return [sock if sock.fileno() >= 0 else None for sock in self.transport.get_extra_info("sockets")]

    async def until_used(self, addresses: set[str]) -> float:
        """Go on until these, and no others, are used."""
        began_s = time.monotonic()
        await self.until("streams", lambda: self.carried().keys() == addresses)
        before = self.carried()

        def are_used() -> bool:
            now = self.carried()
            return all(now.get(host, 0) >= before.get(host, 0) + USED_BYTES for host in addresses)

        await self.until("all used", are_used)
        return time.monotonic() - began_s


def move_uplinks(echoes: bool) -> dict[str, Any]:
    """Take each of two uplinks away under a transfer, and give it back with another address."""
    build()

    async def run() -> dict[str, Any]:
        port = PORT if echoes else PORT + 1
        reader, writer = await mstcp.open_connection(SERVER, port, paths="interfaces", scheduler=SCHEDULER)
        transfer = Transfer(reader, writer, echoes)
        await transfer.until_used({address(1, 2), address(2, 2)})
        reuse_s = []
        transfer.pause_s = 0.0
        for uplink, other in ((1, address(2, 2)), (2, address(1, 3))):
            take_away(uplink, 2)
            await transfer.until_used({other})
            give(uplink, 3)
            reuse_s.append(await transfer.until_used({other, address(uplink, 3)}))
        writer.transport.abort()
        return {"pause_s": transfer.pause_s, "reuse_s": reuse_s}

    return asyncio.run(run())


@pytest.mark.root
@pytest.mark.parametrize("echoes", [True, False])
def test_uplinks_that_go_and_come_back_with_other_addresses_are_used_again(echoes: bool) -> None:
    figures = run_in_sandbox(move_uplinks, echoes, timeout=4 * LIMIT_S)
    # Without other load 0.1 and 0.2 s.
    assert figures["pause_s"] < PAUSE_S and max(figures["reuse_s"]) < REUSE_S, figures


def replace_all(echoes: bool) -> dict[str, Any]:
    """Replace the one address of a host whose streams named none, under a transfer."""
    build()
    take_away(2, 2)

    async def run() -> dict[str, Any]:
        port = PORT if echoes else PORT + 1
        reader, writer = await mstcp.open_connection(
            SERVER, port, streams=[StreamSpec()] * 2, scheduler=SCHEDULER
        )
        transfer = Transfer(reader, writer, echoes)
        await transfer.until_used({address(1, 2)})
        transfer.pause_s = 0.0
        for number in (3, 4):
            take_away(1, number - 1)
            give(1, number)
            await transfer.until_used({address(1, number)})
        await transfer.until("both streams", lambda: transfer.transport.alive_streams == 2)
        writer.transport.abort()
        return {"pause_s": transfer.pause_s}

    return asyncio.run(run())


@pytest.mark.root
@pytest.mark.parametrize("echoes", [True, False])
def test_a_transfer_goes_on_when_all_addresses_of_its_host_are_replaced(echoes: bool) -> None:
    figures = run_in_sandbox(replace_all, echoes, timeout=4 * LIMIT_S)
    assert figures["pause_s"] < PAUSE_S, figures


def add_backup() -> dict[str, Any]:
    """Add and remove streams by hand, one of them a backup that its priority keeps idle."""
    build()

    async def run() -> dict[str, Any]:
        specs = [StreamSpec(local=address(1, 2))] * 2
        reader, writer = await mstcp.open_connection(SERVER, PORT, streams=specs)
        transfer = Transfer(reader, writer, True)
        await transfer.piece()
        backup = await transfer.transport.add_stream(StreamSpec(local=address(2, 2), priority=1))
        for _ in range(20):
            await transfer.piece()
        idle = transfer.transport.counters().streams[backup]
        with pytest.raises(OSError):
            await transfer.transport.add_stream(StreamSpec(local=address(3, 1)))
        take_away(1, 2)
        await transfer.until_used({address(2, 2)})
        writer.transport.abort()
        return {"idle_bytes": idle.bytes_sent + idle.bytes_received}

    return asyncio.run(run())


@pytest.mark.root
def test_a_backup_stream_that_is_added_carries_bytes_when_the_others_fail() -> None:
    assert run_in_sandbox(add_backup, timeout=2 * LIMIT_S) == {"idle_bytes": 0}


@pytest.mark.parametrize(
    "options",
    [
        {"streams": [StreamSpec()]},
        {"source_address": "127.0.0.1"},
        {"controller": "127.0.0.1:1", "rate": 1e6},
        {"paths": mstcp.Interfaces({"lo": StreamSpec(source_port=5)})},
    ],
)
async def test_what_contradicts_interfaces_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match="interface"):
        await mstcp.open_connection("127.0.0.1", 9, **{"paths": "interfaces", **options})


async def test_streams_go_where_the_server_announces_until_it_withdraws_that() -> None:
    accepted: list[StreamWriter] = []
    with socket.create_server(("0.0.0.0", 0)) as listener:  # all loopback addresses
        port = listener.getsockname()[1]
        async with await mstcp.start_server(
            lambda _, writer: accepted.append(writer), sock=listener, announce=[("127.0.0.2", port)]
        ):
            _, writer = await mstcp.open_connection("127.0.0.1", port, max_announced=2)

            def hosts() -> list[str]:
                peers = [
                    sock.getpeername()[0] for sock in writer.get_extra_info("sockets") if sock.fileno() >= 0
                ]
                return sorted(peers)

            await until(lambda: hosts() == ["127.0.0.1", "127.0.0.2"])
            await until(lambda: accepted[0].transport.alive_streams == 2)
            accepted[0].transport.announce([("127.0.0.3", port)])
            await until(lambda: hosts() == ["127.0.0.1", "127.0.0.3"])
            with pytest.raises(LocalProtocolError, match="the server announces"):
                writer.transport.announce([])
            with pytest.raises(LocalProtocolError, match="16 addresses at most"):
                accepted[0].transport.announce([("127.0.0.1", port)] * 17)
            for end in (writer, accepted[0]):
                end.close()
            await writer.wait_closed()
