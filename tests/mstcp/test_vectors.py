"""The core and the package against the test vectors, which are made from the specification alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mstcp import RemoteProtocolError, UnsupportedVersion, _core
from tests.vectors import generate

VECTORS = json.loads(generate.PATH.read_text())


def named(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", VECTORS[kind], ids=lambda vector: vector["name"])


def test_the_file_is_what_the_script_makes() -> None:
    assert json.loads(json.dumps(generate.vectors())) == VECTORS
    assert VECTORS["protocol"] == _core.PROTOCOL_VERSION


def split(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a hello with its proof, its message, and what follows; RemoteProtocolError if there is none."""
    end = _core.HELLO_PREFIX_BYTES + _core.hello_rest_bytes(data[: _core.HELLO_PREFIX_BYTES])
    body = data[_core.HELLO_PREFIX_BYTES : end - _core.HELLO_PROOF_BYTES]
    return data[:end], body, data[end:]


@named("handshakes")
def test_handshakes(vector: dict[str, Any]) -> None:
    secret = bytes.fromhex(vector["streams"][0]["secret"])
    admission = _core.Admission(secret, 10)
    for stream in vector["streams"]:
        hello = bytes.fromhex(stream["hello"])
        verdict = admission.admit(0, hello, bytes.fromhex(stream["server_nonce"]), 1)
        assert verdict.answer.hex() == stream["answer"]
        assert verdict.confirm_frame.hex() == stream["confirm"]
        assert verdict.early_data.hex() == stream["early_data"]
        assert (verdict.stream_id, verdict.priority) == (stream["stream_id"], stream["priority"])
        assert admission.admit(0, hello, bytes(32), 1).code == 4  # a replay


@named("refusals")
def test_refusals(vector: dict[str, Any]) -> None:
    _, body, rest = split(bytes.fromhex(vector["bytes"]))
    assert _core.decode_hello(body)[7] == vector["code"] + 1
    assert rest == _core.encode_close(vector["code"], vector["reason"])
    assert _core.decode_frames(rest, 8) == [("close", vector["code"], vector["reason"])]


def test_the_answer_to_other_versions() -> None:
    opening = split(bytes.fromhex(VECTORS["bad_hellos"][3]["bytes"]))[0]
    verdict = _core.Admission(b"", 1).admit(0, opening, bytes(32), None)
    assert verdict.code == 2
    assert verdict.answer.hex().startswith(VECTORS["version_refusal"])


@named("bad_hellos")
def test_bad_hellos_are_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        _core.decode_hello(split(bytes.fromhex(vector["bytes"]))[1])
    assert isinstance(caught.value, UnsupportedVersion) == (vector["code"] == 2)


def said(vector: dict[str, Any]) -> list[list[Any]]:
    frames = _core.decode_frames(bytes.fromhex(vector["bytes"]), vector["frame_payload_bytes"])
    return [
        ["data", frame[1], frame[2].hex()]
        if frame[0] == "data"
        else ["confirm", frame[1].hex()]
        if frame[0] == "confirm"
        else json.loads(json.dumps(frame))  # lists for tuples
        for frame in frames
    ]


@named("frames")
def test_frames(vector: dict[str, Any]) -> None:
    assert said(vector) == vector["frames"]


@named("bad_frames")
def test_bad_frames_are_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(RemoteProtocolError):
        said(vector)
