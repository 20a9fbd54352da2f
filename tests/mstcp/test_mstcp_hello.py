"""The core's hello is protobuf's, byte for byte, both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from mstcp import RemoteProtocolError, _core
from mstcp.hello import Hello, proof_key
from mstcp.proto import hello_pb2

IDS = st.binary(min_size=16, max_size=16)
COUNTS = st.integers(1, _core.MAX_STREAMS)
KEYS = st.sampled_from([b"", bytes(32), bytes(range(32))])
PAYLOADS = st.integers(1, _core.MAX_FRAME_PAYLOAD_BYTES)


@given(IDS, COUNTS, st.integers(0, 2**32 - 1), PAYLOADS, KEYS, KEYS, st.integers(0, 9))
def test_encoding_is_protobufs(
    connection_id: bytes,
    stream_count: int,
    stream_id: int,
    frame_payload_bytes: int,
    key: bytes,
    proof: bytes,
    refusal: int,
) -> None:
    message = hello_pb2.Hello(
        version=_core.PROTOCOL_VERSION,
        connection_id=connection_id,
        stream_id=stream_id,
        stream_count=stream_count,
        frame_payload_bytes=frame_payload_bytes,
        proof=proof,
        key=key,
        least_version=_core.PROTOCOL_VERSION,
        refusal=refusal,
    )
    body = message.SerializeToString(deterministic=True)
    hello = Hello(connection_id, stream_id, stream_count, frame_payload_bytes, key, proof, refusal)
    assert hello.encode() == _core.MAGIC + len(body).to_bytes(4, "big") + body
    assert Hello(*_core.decode_hello(body)) == hello


@given(st.binary(max_size=300))
def test_decoding_arbitrary_bytes_agrees_with_protobuf(body: bytes) -> None:
    try:
        hello = Hello(*_core.decode_hello(body))
    except RemoteProtocolError:
        return
    message = hello_pb2.Hello.FromString(body)
    assert hello == Hello(
        message.connection_id,
        message.stream_id,
        message.stream_count,
        message.frame_payload_bytes,
        message.key,
        message.proof,
        message.refusal,
    )


@given(st.data())
def test_decoding_a_damaged_hello_agrees_with_protobuf(data: st.DataObject) -> None:
    body = bytearray(Hello(bytes(16), 1, 2, 528, b"", bytes(32)).encode()[_core.HELLO_PREFIX_BYTES :])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(body[: data.draw(st.integers(0, len(body)))])
    try:
        ours = Hello(*_core.decode_hello(damaged))
    except RemoteProtocolError:
        return
    theirs = hello_pb2.Hello.FromString(damaged)
    assert ours.connection_id == theirs.connection_id
    assert (ours.stream_id, ours.stream_count) == (theirs.stream_id, theirs.stream_count)
    assert (ours.frame_payload_bytes, ours.proof) == (theirs.frame_payload_bytes, theirs.proof)


@given(st.binary(max_size=40))
def test_what_protobuf_cannot_read_the_core_refuses(body: bytes) -> None:
    try:
        hello_pb2.Hello.FromString(body)
    except DecodeError:
        with pytest.raises(RemoteProtocolError):
            _core.decode_hello(body)


def test_the_proof_covers_every_field() -> None:
    key = bytes(range(32))
    prover = proof_key(key, b"secret")
    hello = Hello(bytes(16), 1, 2, 528, key).sealed(prover)
    hello.check_proof(prover)
    for change in (
        {"connection_id": bytes(15) + b"x"},
        {"stream_id": 0},
        {"stream_count": 3},
        {"frame_payload_bytes": 529},
        {"key": b""},
        {"proof": b""},
        {"refusal": 1},
    ):
        with pytest.raises(RemoteProtocolError, match="shared secret"):
            replace(hello, **change).check_proof(prover)
    for other in (proof_key(key, None), proof_key(bytes(32), b"secret")):
        with pytest.raises(RemoteProtocolError, match="shared secret"):
            hello.check_proof(other)
    with pytest.raises(RemoteProtocolError, match="shared secret"):
        hello.check_proof(prover, answer=True)


def test_a_prefix_of_another_size_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="the prefix has 3 bytes, not 12"):
        _core.hello_body_bytes(b"abc")
