"""A client that says hellos by hand, made from the specification alone (tests/vectors/generate.py)."""

from __future__ import annotations

import asyncio
import secrets
import struct

from tests.vectors import generate

ID = b"an id of 16 byte"
PREFIX_BYTES = len(generate.MAGIC) + 4


class RawClient:
    """The hellos of one connection.

    Attributes:
        key: The connection's key, once stream 0 was answered.
    """

    def __init__(
        self, connection_id: bytes = ID, *, count: int = 2, payload: int = 100, secret: bytes = b""
    ) -> None:
        self.connection_id = connection_id
        self.count = count
        self.payload = payload
        self.secret = secret
        self.key: bytes | None = None
        self._said: dict[int, bytes] = {}

    def hello(self, stream_id: int = 0, *, key: bytes | None = None, early: bytes = b"") -> bytes:
        """Return a hello with its proof, made with the connection's key or another."""
        body = generate.message(
            {
                1: generate.VERSION,
                2: self.connection_id,
                3: stream_id,
                4: self.count,
                5: self.payload,
                6: secrets.token_bytes(32),
                7: early,
                8: generate.VERSION,
            }
        )
        self._said[stream_id] = body
        if key is None:
            key = self.key if stream_id else generate.proof(self.secret, b"mstcp 3 first")
        return body + generate.proof(key or bytes(32), b"hello", body)

    def confirm(self, answer: bytes, stream_id: int = 0) -> bytes:
        """Return the CONFIRM frame of a stream that was answered; of stream 0 it makes the key."""
        hello, answer = self._said[stream_id], answer[:-32]
        if stream_id == 0:
            self.key = generate.proof(self.secret, b"mstcp 3 connection", hello, answer)
        assert self.key is not None
        return generate.control(7, generate.proof(self.key, b"confirm", hello, answer))

    async def exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stream_id: int = 0
    ) -> None:
        """Open a stream: hello, answer, CONFIRM."""
        writer.write(self.hello(stream_id))
        answer = await read_answer(reader)
        assert refusal_of(answer) is None
        writer.write(self.confirm(answer, stream_id))


def fields_of(message: bytes) -> dict[int, int | bytes]:
    """Return the fields of a whole hello or answer by their numbers; more may follow it."""
    fields: dict[int, int | bytes] = {}
    (length,) = struct.unpack_from(">I", message, PREFIX_BYTES - 4)
    body, place = message[PREFIX_BYTES : PREFIX_BYTES + length], 0
    while place < len(body):
        tag, place = _varint(body, place)
        value, place = _varint(body, place)
        if tag & 7 == 2:
            fields[tag >> 3], place = body[place : place + value], place + value
        else:
            fields[tag >> 3] = value
    return fields


def answer_to(hello: bytes, nonce: bytes) -> bytes:
    """Return the answer of a server without a secret to a first hello."""
    asked, hello = fields_of(hello), hello[:-32]
    repeated = {number: asked.get(number, 0) for number in (2, 3, 4, 5)}
    answer = generate.message({**repeated, 1: generate.VERSION, 6: nonce, 8: generate.VERSION})
    key = generate.proof(b"", b"mstcp 3 connection", hello, answer)
    return answer + generate.proof(key, b"answer", hello, answer)


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    """Return a whole answer, or a hello."""
    prefix = await reader.readexactly(PREFIX_BYTES)
    (length,) = struct.unpack(">I", prefix[-4:])
    return prefix + await reader.readexactly(length + 32)


def refusal_of(answer: bytes) -> int | None:
    """Return the error code of an answer that refuses."""
    refusal = fields_of(answer).get(9)
    return refusal - 1 if isinstance(refusal, int) else None


def closes_in(data: bytes, payload_bytes: int) -> list[tuple[int, str]]:
    """Return code and sentence of each CLOSE in a stream's bytes."""
    closes, place = [], 0
    while place + 8 <= len(data):
        (word,) = struct.unpack_from(">Q", data, place)
        kind, place = word >> 62, place + 8
        length = payload_bytes if kind == 0 else word & 0xFFFF
        if kind % 2:
            count = 2 if kind == 1 else 4
            length, place = int.from_bytes(data[place : place + count], "big"), place + count
        body, place = data[place : place + length], place + length
        if kind == 2 and word >> 56 & 0x3F == 4:
            closes.append((int.from_bytes(body[:2], "big"), body[2:].decode()))
    return closes


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
