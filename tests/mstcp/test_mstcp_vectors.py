"""The core and the package against the test vectors, which are made from the specification alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mstcp import RemoteProtocolError, UnsupportedVersion, _core
from mstcp.hello import Hello, proof_key
from tests.vectors import generate

VECTORS = json.loads(generate.PATH.read_text())


def named(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", VECTORS[kind], ids=lambda vector: vector["name"])


def test_the_file_is_what_the_script_makes() -> None:
    assert json.loads(json.dumps(generate.vectors())) == VECTORS
    assert VECTORS["protocol"] == _core.PROTOCOL_VERSION


def split(data: bytes) -> tuple[bytes, bytes]:
    """Return a hello's message and what follows it; RemoteProtocolError if there is none."""
    length = _core.hello_body_bytes(data[: _core.HELLO_PREFIX_BYTES])
    rest = data[_core.HELLO_PREFIX_BYTES :]
    return rest[:length], rest[length:]


@named("hellos")
def test_hellos_and_their_proofs(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["bytes"])
    body, rest = split(data)
    hello = Hello(*_core.decode_hello(body))
    assert not rest
    assert hello.encode() == data
    for name in ("stream_id", "stream_count", "frame_payload_bytes", "refusal"):
        assert getattr(hello, name) == vector[name]
    assert hello.connection_id.hex() == vector["connection_id"]
    prover = proof_key(bytes.fromhex(vector["connection_key"]), bytes.fromhex(vector["secret"]))
    hello.check_proof(prover, answer=vector["answer"])
    with pytest.raises(RemoteProtocolError):
        hello.check_proof(prover, answer=not vector["answer"])


@named("refusals")
def test_refusals(vector: dict[str, Any]) -> None:
    body, rest = split(bytes.fromhex(vector["bytes"]))
    assert Hello(*_core.decode_hello(body)).refusal == vector["code"] + 1
    assert rest == _core.encode_close(vector["code"], vector["reason"])
    assert _core.decode_frames(rest, 8) == [("close", vector["code"], vector["reason"])]


def test_the_answer_to_other_versions() -> None:
    assert _core.encode_version_refusal().hex() == VECTORS["version_refusal"]


@named("bad_hellos")
def test_bad_hellos_are_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        _core.decode_hello(split(bytes.fromhex(vector["bytes"]))[0])
    assert isinstance(caught.value, UnsupportedVersion) == (vector["code"] == 2)


def said(vector: dict[str, Any]) -> list[list[Any]]:
    found = _core.decode_frames(bytes.fromhex(vector["bytes"]), vector["frame_payload_bytes"])
    return [
        ["data", frame[1], frame[2].hex()]
        if frame[0] == "data"
        else json.loads(json.dumps(frame))  # lists for tuples
        for frame in found
    ]


@named("frames")
def test_frames(vector: dict[str, Any]) -> None:
    assert said(vector) == vector["frames"]


@named("bad_frames")
def test_bad_frames_are_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError):
        said(vector)


@named("bad_conversations")
def test_frames_that_do_not_fit_end_the_connection(vector: dict[str, Any]) -> None:
    said(vector)  # well-formed
    core = _core.Connection(
        [1.0],
        vector["frame_payload_bytes"],
        scheduler="weighted",
        seed=0,
        send_queue_bytes=1 << 20,
        reorder_buffer_bytes=1 << 18,
    )
    with pytest.raises(RemoteProtocolError):
        core.receive(0, bytes.fromhex(vector["bytes"]))
