"""One end of one transfer, as a process: `python -m benchmarks.transport.peer ROLE KIND PORT SECONDS`.

The sink says when it listens, and at the end what came in which time; both say what they cost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import mstcp
from benchmarks.peak_memory import peak_memory_mib
from benchmarks.transport import addresses, programs

WRITE_BYTES = 1 << 20
READ_BYTES = 1 << 20
MESSAGE_BYTES = {"latency": 1024, "message": 100}
"""By the last word of the kind: what goes there and back."""
LOOPBACK_STREAMS = 8
IPPROTO_MPTCP = 262
LISTEN_PORT = 5001


class Counter(asyncio.Protocol):
    """Counts what comes, from the first byte to the end."""

    def __init__(self) -> None:
        self.bytes = 0
        self.began_s = 0.0
        self.ended: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Count."""
        self.began_s = self.began_s or time.monotonic()
        self.bytes += len(data)

    def eof_received(self) -> bool:
        """Note the end."""
        self.ended.set_result(time.monotonic())
        return True


class Writer(asyncio.Protocol):
    """Writes while the transport wants more, for some seconds."""

    def __init__(self, seconds: float) -> None:
        self._until_s = time.monotonic() + seconds
        self._chunk = bytes(WRITE_BYTES)
        self._room = asyncio.Event()
        self._room.set()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, transport: Any) -> None:
        """Write, then end."""
        while time.monotonic() < self._until_s:
            await self._room.wait()
            transport.write(self._chunk)
            await asyncio.sleep(0)
        transport.write_eof()

    def pause_writing(self) -> None:
        """Wait."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Go on."""
        self._room.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Note the end."""
        if not self.lost.done():
            self.lost.set_result(None)


def say(**values: Any) -> None:
    """Tell the process that measures."""
    print(json.dumps(values), flush=True)


def cpu_s(whose: int = resource.RUSAGE_SELF) -> float:
    """Return what this process has cost, or its children; what it took to load is no transfer's."""
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


async def sink(kind: str) -> None:
    """Receive one transfer, or send messages back."""
    ended = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if conversation(kind):
            while len(data := await reader.read(READ_BYTES)):
                writer.write(data)
            result = {}
        elif kind.endswith("protocol"):
            counter = Counter()
            writer.transport.set_protocol(counter)
            end_s = await counter.ended
            result = {"bytes": counter.bytes, "seconds": end_s - counter.began_s}
        else:
            count, began_s = 0, 0.0
            while data := await reader.read(READ_BYTES):
                began_s = began_s or time.monotonic()
                count += len(data)
            result = {"bytes": count, "seconds": time.monotonic() - began_s}
        writer.transport.close()
        ended.set_result(result)

    start: Any = mstcp.start_server if kind.startswith("mstcp") else asyncio.start_server
    # The default limit makes readers pause at every read.
    server = await start(serve, address_of(kind), LISTEN_PORT, limit=READ_BYTES)
    say(listening=True)
    result = await ended
    await asyncio.sleep(0.05)
    server.close()
    say(**result)


def conversation(kind: str) -> int:
    """Return the size of the messages that go there and back; 0 if the transfer goes one way."""
    return MESSAGE_BYTES.get(kind.rpartition("_")[2], 0)


def address_of(kind: str) -> str:
    """Return where the sink listens: at the far host, or on the near host's loopback."""
    return "127.0.0.1" if kind.endswith("loopback") else addresses.FAR


def stream_options(kind: str, offset: int) -> dict[str, Any]:
    """Return how MSTCP opens a stream over each path; `offset` keeps runs' source ports apart."""
    if kind.endswith("loopback"):
        return {"streams": [mstcp.StreamSpec()] * LOOPBACK_STREAMS}
    ports = (addresses.FIRST_PATH_PORT + offset, addresses.SECOND_PATH_PORT + offset)
    specs = [mstcp.StreamSpec(source_port=port) for port in ports]
    if "_single_" in kind:
        del specs[1:]
    return {"streams": specs, "source_address": addresses.NEAR}


async def source(kind: str, offset: int, seconds: float) -> None:
    """Send for some seconds, or measure how long messages take there and back."""
    if kind.startswith("mstcp"):
        options = stream_options(kind, offset)
        if kind.endswith("protocol"):
            transport, writing = await mstcp.create_connection(
                lambda: Writer(seconds), addresses.FAR, LISTEN_PORT, **options
            )
            await writing.run(transport)
            await writing.lost
            return
        opening: Any = mstcp.open_connection(address_of(kind), LISTEN_PORT, limit=READ_BYTES, **options)
    else:
        opening = asyncio.open_connection(address_of(kind), LISTEN_PORT, limit=READ_BYTES)
    reader, writer = await opening
    if size := conversation(kind):
        await _converse(reader, writer, size, seconds)
        return
    chunk, until_s = bytes(WRITE_BYTES), time.monotonic() + seconds
    while time.monotonic() < until_s:
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()
    await reader.read()


async def _converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int, seconds: float
) -> None:
    message, until_s, times = bytes(size), time.monotonic() + seconds, []
    while (began_s := time.monotonic()) < until_s:
        writer.write(message)
        await reader.readexactly(size)
        times.append(time.monotonic() - began_s)
    writer.write_eof()
    await reader.read()
    times.sort()
    say(p50=times[len(times) // 2] * 1e6, p99=times[len(times) * 99 // 100] * 1e6, count=len(times))


def mptcp_sink() -> None:
    """Receive one transfer over the kernel's MPTCP."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # On all addresses: a subflow to the second is a connection request like any other, for this listener.
        listener.bind(("", LISTEN_PORT))
        listener.listen()
        say(listening=True)
        sock, _ = listener.accept()
        with sock:
            # Before it has heard from its peer, a client may open no subflow (RFC 8684, section 3.1).
            sock.sendall(b"\0")
            _count_all(sock)


def pair_sink() -> None:
    """Receive two plain TCPs at once, in this one thread."""
    with (
        socket.create_server((addresses.FAR, LISTEN_PORT)) as listener,
        selectors.DefaultSelector() as selector,
    ):
        say(listening=True)
        socks = [listener.accept()[0] for _ in range(2)]
        for sock in socks:
            selector.register(sock, selectors.EVENT_READ, sock)
        buffer, count, began_s = bytearray(READ_BYTES), 0, 0.0
        while selector.get_map():
            for key, _ in selector.select():
                began_s = began_s or time.monotonic()
                size = key.data.recv_into(buffer)
                count += size
                if not size:
                    selector.unregister(key.fileobj)
        say(bytes=count, seconds=time.monotonic() - began_s)
        for sock in socks:
            sock.close()


def pair_source(offset: int, seconds: float) -> None:
    """Send for some seconds over two plain TCPs at once, in this one thread."""
    chunk, until_s = bytes(WRITE_BYTES), time.monotonic() + seconds
    ports = (addresses.FIRST_PATH_PORT + offset, addresses.SECOND_PATH_PORT + offset)
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        socks = []
        for port in ports:
            sock = stack.enter_context(
                socket.create_connection((addresses.FAR, LISTEN_PORT), source_address=(addresses.NEAR, port))
            )
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_WRITE, sock)
            socks.append(sock)
        while time.monotonic() < until_s:
            for key, _ in selector.select():
                key.data.send(chunk)
        for sock in socks:
            sock.setblocking(True)
            sock.shutdown(socket.SHUT_WR)
        for sock in socks:
            sock.recv(1)


def _count_all(sock: socket.socket | mstcp.blocking.Socket) -> None:
    """Read to the end and say what came."""
    buffer, count, began_s = bytearray(READ_BYTES), 0, 0.0
    while size := sock.recv_into(buffer):
        began_s = began_s or time.monotonic()
        count += size
    say(bytes=count, seconds=time.monotonic() - began_s)


def _send_for(sock: socket.socket | mstcp.blocking.Socket, seconds: float) -> None:
    """Send, end, and wait until the peer has ended too."""
    chunk, until_s = bytes(WRITE_BYTES), time.monotonic() + seconds
    while time.monotonic() < until_s:
        sock.sendall(chunk)
    sock.shutdown(socket.SHUT_WR)
    sock.recv(1)


def blocking_sink() -> None:
    """Receive one transfer by mstcp.blocking."""
    with mstcp.blocking.create_server((addresses.FAR, LISTEN_PORT)) as listener:
        say(listening=True)
        sock, _ = listener.accept()
        with sock:
            _count_all(sock)


def blocking_source(kind: str, offset: int, seconds: float) -> None:
    """Send for some seconds by mstcp.blocking."""
    address = (addresses.FAR, LISTEN_PORT)
    with mstcp.blocking.create_connection(address, **stream_options(kind, offset)) as sock:
        _send_for(sock, seconds)


def mptcp_source(seconds: float) -> None:
    """Send for some seconds over the kernel's MPTCP; its path manager opens the second subflow."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP) as sock:
        sock.connect((addresses.path_address(0, 1), LISTEN_PORT))
        sock.recv(1)
        _send_for(sock, seconds)


def main() -> None:
    """Run the end that the arguments name."""
    role, kind, offset, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    began_s = cpu_s()
    blocking: dict[tuple[str, str], Callable[[], None]] = {
        ("sink", "mptcp"): mptcp_sink,
        ("source", "mptcp"): lambda: mptcp_source(seconds),
        ("sink", "tcp2_pair"): pair_sink,
        ("source", "tcp2_pair"): lambda: pair_source(offset, seconds),
        ("sink", "mstcp_blocking"): blocking_sink,
        ("source", "mstcp_blocking"): lambda: blocking_source(kind, offset, seconds),
        ("sink", "mstcp_single_blocking"): blocking_sink,
        ("source", "mstcp_single_blocking"): lambda: blocking_source(kind, offset, seconds),
    }
    if kind in programs.KINDS:
        peak_mib = programs.run(role, kind, LISTEN_PORT, offset, seconds)
        say(cpu_s=cpu_s(resource.RUSAGE_CHILDREN), peak_mib=peak_mib)
        return
    if (role, kind) in blocking:
        blocking[role, kind]()
    else:
        asyncio.run(sink(kind) if role == "sink" else source(kind, offset, seconds))
    say(cpu_s=cpu_s() - began_s, peak_mib=peak_memory_mib())


if __name__ == "__main__":
    main()
