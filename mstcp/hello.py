"""How a client opens a stream, as far as its socket is concerned.

What a hello says and proves is the core's affair (`_core.Client`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

from mstcp import _core
from mstcp.errors import ConnectionLost, MstcpError, RemoteProtocolError
from mstcp.layer import StreamLayer
from mstcp.records import RecordStream

NONCE_BYTES = 32

_REASON_BYTES = 8 + 2 + 256
_REASON_S = 0.5


class NoHello(RemoteProtocolError):
    """What came does not begin as a hello: the peer speaks something else."""


async def exchange_hellos(
    loop: asyncio.AbstractEventLoop,
    sock: socket.socket,
    client: _core.Client,
    greeting: _core.Greeting,
    timeout_s: float,
    layer: StreamLayer | None = None,
    *,
    has_records: bool = False,
) -> StreamLayer | None:
    """Say a hello, take its answer and confirm it: then the stream carries frames.

    Returns:
        What the frames go through: `layer`, or the stream's records.

    Raises:
        RemoteProtocolError: The answer is none, does not fit, did not come in time, or refuses the stream.
        ConnectionLost: The stream ended or broke before.
    """

    def wire(data: bytes) -> bytes:
        return data if layer is None else layer.encrypt(data)

    deadline = loop.time() + timeout_s
    await loop.sock_sendall(sock, wire(greeting.bytes))
    reader = HelloReader(loop, sock, layer)
    answer = await _read_hello(reader, deadline)
    try:
        confirm = client.answered(greeting, answer)
    except RemoteProtocolError as error:
        told = await _read_reason(HelloReader(loop, sock, layer), min(deadline, loop.time() + _REASON_S))
        if told and type(error) is RemoteProtocolError:
            raise RemoteProtocolError(f"{error.reason} ({told})") from None
        raise
    with contextlib.suppress(OSError):  # the peer is gone already; reading tells why
        if has_records:
            layer = RecordStream(client.records(greeting, answer))
        await loop.sock_sendall(sock, wire(confirm))
    return layer


async def _read_reason(reader: HelloReader, deadline: float) -> str:
    """Return what the CLOSE after a refusal says; nothing if there is none that can be shown."""
    try:
        while not reader.ended and len(reader.data) < _REASON_BYTES:
            if not await reader.more(_REASON_BYTES, deadline - reader.loop.time()):
                break
        frames = _core.decode_frames(reader.data, 1)
    except MstcpError:
        return ""
    told = [frame[2] for frame in frames if frame[0] == "close"]
    return told[0] if told and told[0].isprintable() else ""


async def _read_hello(reader: HelloReader, deadline: float) -> bytes:
    """Return a whole hello with its proof."""
    wanted = _core.HELLO_PREFIX_BYTES
    rest_known = False
    while len(reader.data) < wanted:
        _check_came(await reader.more(wanted, deadline - reader.loop.time()), reader)
        if not rest_known and len(reader.data) == _core.HELLO_PREFIX_BYTES:
            rest_known = True
            if not reader.data.startswith(_core.MAGIC):
                raise NoHello("the stream does not begin with the MSTCP magic")
            wanted += _core.hello_rest_bytes(reader.data)
    return reader.data


def _check_came(came: bool, reader: HelloReader) -> None:
    if not came:
        raise RemoteProtocolError("no complete hello came in time")
    if reader.ended:
        raise ConnectionLost("the stream ended within its hello")


class HelloReader:
    """Reads the first bytes of a stream, and never one too many."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, layer: StreamLayer | None
    ) -> None:
        self.loop = loop
        self.sock = sock
        self._layer = layer
        self.data = b""
        self.ended = False

    async def more(self, wanted: int, timeout_s: float) -> bool:
        """Read on, up to `wanted` bytes in all; False if nothing came in time.

        Waits for readiness and reads then, so that a wait that is cut short loses no byte.
        """
        if self._layer is not None and self._take(self._layer.read(wanted - len(self.data))):
            return True
        ready: asyncio.Future[None] = self.loop.create_future()
        self.loop.add_reader(self.sock, self._set_ready, ready)
        try:
            await asyncio.wait([ready], timeout=max(timeout_s, 0.0))
        finally:
            self.loop.remove_reader(self.sock)
        if not ready.done():
            ready.cancel()
            return False
        try:
            if self._layer is None:
                self._take(self.sock.recv(wanted - len(self.data)))
            else:
                self._layer.feed(self.sock)
                self._take(self._layer.read(wanted - len(self.data)))
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            raise ConnectionLost(error.strerror or str(error)) from error
        return True

    def _take(self, data: bytes | None) -> bool:
        if data is None:
            return False
        self.data += data
        self.ended = not data
        return True

    @staticmethod
    def _set_ready(ready: asyncio.Future[None]) -> None:
        if not ready.done():
            ready.set_result(None)
