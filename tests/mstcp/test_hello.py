"""The core's hello is protobuf's, byte for byte, both ways."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from mstcp import RemoteProtocolError, _core
from mstcp.proto import hello_pb2

IDS = st.binary(min_size=16, max_size=16)
COUNTS = st.integers(1, _core.MAX_STREAMS)
NONCES = st.binary(min_size=32, max_size=32)
PAYLOADS = st.integers(1, _core.MAX_FRAME_PAYLOAD_BYTES)
EXAMPLE = _core.Client(b"", bytes(range(16)), 2, 528).greet(bytes(range(32)), 1, b"early").bytes


def said(message: hello_pb2.Hello) -> tuple[object, ...]:
    return (
        (message.version, message.least_version),
        message.connection_id,
        message.stream_id,
        message.stream_count,
        message.frame_payload_bytes,
        message.nonce,
        message.early_data,
        message.refusal,
        message.priority,
        message.records,
    )


@given(IDS, COUNTS, PAYLOADS, NONCES, st.integers(0, 255), st.binary(max_size=20))
def test_encoding_is_protobufs(
    connection_id: bytes, stream_count: int, payload: int, nonce: bytes, priority: int, early: bytes
) -> None:
    message = hello_pb2.Hello(
        version=_core.PROTOCOL_VERSION,
        connection_id=connection_id,
        stream_count=stream_count,
        frame_payload_bytes=payload,
        nonce=nonce,
        early_data=early,
        least_version=_core.PROTOCOL_VERSION,
        priority=priority,
    )
    body = message.SerializeToString(deterministic=True)
    opening = _core.Client(b"", connection_id, stream_count, payload).greet(nonce, priority, early).bytes
    assert opening[: -_core.HELLO_PROOF_BYTES] == _core.MAGIC + len(body).to_bytes(4, "big") + body
    assert _core.decode_hello(body) == said(message)


@given(st.binary(max_size=300))
def test_decoding_arbitrary_bytes_agrees_with_protobuf(body: bytes) -> None:
    try:
        hello = _core.decode_hello(body)
    except RemoteProtocolError:
        return
    assert hello == said(hello_pb2.Hello.FromString(body))


@given(st.data())
def test_decoding_a_damaged_hello_agrees_with_protobuf(data: st.DataObject) -> None:
    body = bytearray(EXAMPLE[_core.HELLO_PREFIX_BYTES : -_core.HELLO_PROOF_BYTES])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(body[: data.draw(st.integers(0, len(body)))])
    try:
        ours = _core.decode_hello(damaged)
    except RemoteProtocolError:
        return
    assert ours == said(hello_pb2.Hello.FromString(damaged))


@given(st.binary(max_size=40))
def test_what_protobuf_cannot_read_the_core_refuses(body: bytes) -> None:
    try:
        hello_pb2.Hello.FromString(body)
    except DecodeError:
        with pytest.raises(RemoteProtocolError):
            _core.decode_hello(body)


def test_a_prefix_of_another_size_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="the prefix has 3 bytes, not 12"):
        _core.hello_rest_bytes(b"abc")
