"""How a stream opens: the hello, its proof, and telling an MSTCP stream from plain TCP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
from dataclasses import dataclass, replace
from typing import Literal

from mstcp import _core
from mstcp.errors import ConnectionLost, MstcpError, RemoteProtocolError
from mstcp.tls import TlsStream

PlainRule = bool | Literal["auto"]


_PROOF_CONTEXT = b"mstcp 2 proof"
KEY_BYTES = 32

# Error codes of docs/protocol.md; a refusal is one more.
UNSUPPORTED_VERSION = 2
UNKNOWN_CONNECTION = 3
NOT_AUTHORISED = 4
LIMIT_EXCEEDED = 5

_REASON_BYTES = 8 + 2 + 256
_REASON_S = 0.5


class NoHello(RemoteProtocolError):
    """What came does not begin as a hello: the peer speaks something else."""


def proof_key(key: bytes, secret: bytes | None) -> bytes:
    """Return what the proofs of a connection are made with.

    Args:
        key: The 32 random bytes of the connection's first hello.
        secret: What both sides know beforehand, if anything.
    """
    return hmac.digest(secret or b"", _PROOF_CONTEXT + key, hashlib.sha256)


@dataclass(frozen=True)
class Hello:
    """What a stream says about itself, and its answer; see mstcp/proto/hello.proto."""

    connection_id: bytes
    stream_id: int
    stream_count: int
    frame_payload_bytes: int
    key: bytes = b""
    proof: bytes = b""
    refusal: int = 0

    def encode(self) -> bytes:
        """Return the bytes that open the stream."""
        return _core.encode_hello(
            self.connection_id,
            self.stream_id,
            self.stream_count,
            self.frame_payload_bytes,
            self.key,
            self.proof,
            self.refusal,
        )

    def sealed(self, prover: bytes, *, answer: bool = False) -> Hello:
        """Return the hello with its proof, made with `proof_key(...)`."""
        return replace(self, proof=self._seal(prover, answer))

    def check_proof(self, prover: bytes, *, answer: bool = False) -> None:
        """Check the proof; RemoteProtocolError if the sender does not know the key and the secret."""
        if not hmac.compare_digest(self.proof, self._seal(prover, answer)):
            raise RemoteProtocolError("the hello does not prove that its sender knows the shared secret")

    def _seal(self, prover: bytes, answer: bool) -> bytes:
        body = replace(self, proof=b"").encode()
        # An answer repeats the hello: it must not be taken for it, nor the hello for an answer.
        return hmac.digest(prover, (b"answer" if answer else b"hello") + body, hashlib.sha256)


async def read_answer(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, timeout_s: float, tls: TlsStream | None = None
) -> Hello:
    """Read the answer to a hello, and not a byte more.

    Raises:
        RemoteProtocolError: It is none, did not come in time, or refuses the stream.
        ConnectionLost: The stream ended or broke before.
    """
    deadline = loop.time() + timeout_s
    answer = await _read_hello(_Opening(loop, sock, tls), deadline)
    if answer.refusal:
        why = _REFUSALS.get(answer.refusal - 1, f"code {answer.refusal - 1}")
        told = await _read_reason(_Opening(loop, sock, tls), min(deadline, loop.time() + _REASON_S))
        raise RemoteProtocolError(f"the peer refuses the stream: {why}" + (f" ({told})" if told else ""))
    return answer


async def _read_reason(reader: _Opening, deadline: float) -> str:
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


_REFUSALS = {
    UNSUPPORTED_VERSION: "it speaks no version of ours",
    UNKNOWN_CONNECTION: "it does not know the connection (any more)",
    NOT_AUTHORISED: "the proof of the shared secret is wrong, or the stream's id was used before",
    LIMIT_EXCEEDED: "one of its limits is reached",
}


@dataclass(frozen=True)
class PlainOpening:
    """A stream taken for plain TCP.

    Attributes:
        data: What was read of it so far.
        decided: Whether the data shows that it is no MSTCP stream; if not, a hello that comes later is an
            error.
    """

    data: bytes
    decided: bool


async def read_opening(
    loop: asyncio.AbstractEventLoop,
    sock: socket.socket,
    plain: PlainRule,
    *,
    silence_s: float,
    timeout_s: float,
    tls: TlsStream | None = None,
) -> Hello | PlainOpening:
    """Find out what a freshly accepted stream is.

    Args:
        loop: The event loop.
        sock: The accepted, non-blocking socket.
        plain: True: always plain TCP. False: always MSTCP. "auto": plain TCP as soon as a byte differs from
            the magic, or when nothing came for `silence_s` (the server may be the one who speaks first).
        silence_s: See `plain`.
        timeout_s: How long a hello may take once it is awaited.
        tls: TLS of the stream, if it has any; the handshake is done.

    Raises:
        RemoteProtocolError: The hello is wrong, or did not come in time.
        ConnectionLost: The stream ended or broke within the hello.
    """
    if plain is True:
        return PlainOpening(b"", decided=True)
    deadline = loop.time() + timeout_s
    reader = _Opening(loop, sock, tls)
    while len(reader.data) < len(_core.MAGIC):
        wait = silence_s if plain == "auto" and not reader.data else deadline - loop.time()
        came = await reader.more(len(_core.MAGIC), wait)
        differs = reader.ended or not _core.MAGIC.startswith(reader.data)
        if plain == "auto" and (differs or not came):
            return PlainOpening(reader.data, decided=differs)
        _check_came(came, reader)
        if not _core.MAGIC.startswith(reader.data):
            raise RemoteProtocolError("the stream does not begin with the MSTCP magic")
    return await _read_hello(reader, deadline)


async def _read_hello(reader: _Opening, deadline: float) -> Hello:
    wanted = _core.HELLO_PREFIX_BYTES
    body_known = False
    while len(reader.data) < wanted:
        _check_came(await reader.more(wanted, deadline - reader.loop.time()), reader)
        if not body_known and len(reader.data) == _core.HELLO_PREFIX_BYTES:
            body_known = True
            if not reader.data.startswith(_core.MAGIC):
                raise NoHello("the stream does not begin with the MSTCP magic")
            wanted += _core.hello_body_bytes(reader.data)
    return Hello(*_core.decode_hello(reader.data[_core.HELLO_PREFIX_BYTES :]))


def _check_came(came: bool, reader: _Opening) -> None:
    if not came:
        raise RemoteProtocolError("no complete hello came in time")
    if reader.ended:
        raise ConnectionLost("the stream ended within its hello")


class _Opening:
    """Reads the first bytes of a stream, and never one too many."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket, tls: TlsStream | None) -> None:
        self.loop = loop
        self.sock = sock
        self._tls = tls
        self.data = b""
        self.ended = False

    async def more(self, wanted: int, timeout_s: float) -> bool:
        """Read on, up to `wanted` bytes in all; False if nothing came in time.

        Waits for readiness and reads then, so that a wait that is cut short loses no byte.
        """
        if self._tls is not None and self._take(self._tls.read(wanted - len(self.data))):
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
            if self._tls is None:
                self._take(self.sock.recv(wanted - len(self.data)))
            else:
                self._tls.feed(self.sock)
                self._take(self._tls.read(wanted - len(self.data)))
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
