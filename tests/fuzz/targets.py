"""Fuzz targets of the Python parsers: each takes any bytes and accepts the documented errors alone."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from controller.api.schema import FlowRequestBody, RateChange, invalid_request
from experiments import scenario
from experiments.errors import ExperimentError
from mstcp import MstcpError, RemoteProtocolError, _core
from mstcp.endpoints import parse_endpoint, parse_rule
from mstcp.preamble import (
    ANSWER_BYTES,
    REQUEST_BYTES,
    Destination,
    check_answer,
    decode_request,
    encode_answer,
    host_bytes,
)
from mstcp.stats import parse_tcp_info
from topologies.errors import TopologyError
from topologies.load import load as load_topology

Target = Callable[[bytes], None]


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mstcp-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def rest(data: bytes) -> None:
    """Bodies of REST requests; what is refused is refused with a field and a sentence."""
    models: tuple[type[BaseModel], ...] = (FlowRequestBody, RateChange)
    for model in models:
        try:
            model.model_validate_json(data)
        except ValidationError as error:  # noqa: PERF203
            assert invalid_request(list(error.errors())).reason


def scenario_file(data: bytes) -> None:
    """Scenario files."""
    path = _folder() / "scenario.toml"
    path.write_bytes(data)
    try:
        scenario.load(str(path))
    except ExperimentError as error:
        assert str(error)


def topology_file(data: bytes) -> None:
    """Networks in TOML."""
    path = _folder() / "network.toml"
    path.write_bytes(data)
    try:
        load_topology(str(path))
    except TopologyError as error:
        assert str(error)


def hello(data: bytes) -> None:
    """The first message of a stream, and what may follow it."""
    try:
        prefix = data[: _core.HELLO_PREFIX_BYTES].ljust(_core.HELLO_PREFIX_BYTES)
        end = _core.HELLO_PREFIX_BYTES + _core.hello_rest_bytes(prefix)
        verdict = _core.Admission(b"", 1).admit(data[:end], bytes(32), 1)
        assert verdict.code is not None or verdict.stream_id == 0
        said = _core.decode_hello(data[_core.HELLO_PREFIX_BYTES : end - _core.HELLO_PROOF_BYTES])
        _core.decode_frames(data[end:], said[4])
    except RemoteProtocolError as error:
        assert str(error)


def preamble(data: bytes) -> None:
    """What proxies say to each other."""
    try:
        head = data[:REQUEST_BYTES]
        length = host_bytes(head)
        destination = decode_request(head, data[REQUEST_BYTES : REQUEST_BYTES + length])
        assert destination.encode() == data[: REQUEST_BYTES + length]
    except MstcpError as error:
        assert str(error)
    try:
        head = data[:ANSWER_BYTES]
        check_answer(head, data[ANSWER_BYTES : ANSWER_BYTES + (head[2] if len(head) == ANSWER_BYTES else 0)])
    except MstcpError as error:
        assert str(error)
    text = data.decode(errors="replace")
    assert len(encode_answer(0, text)) <= ANSWER_BYTES + 255
    for parse in (parse_endpoint, parse_rule):
        try:
            parsed = parse(text)
        except ValueError as error:  # noqa: PERF203
            assert repr(text) in str(error)
        else:
            assert isinstance(parsed, Destination) or parsed.port is None or 0 < parsed.port < 1 << 16
    parse_tcp_info(data)


TARGETS: dict[str, Target] = {
    "rest": rest,
    "scenario": scenario_file,
    "topology": topology_file,
    "hello": hello,
    "preamble": preamble,
}


def seeds(name: str) -> list[bytes]:
    """Return inputs that make sense, to begin with."""
    root = Path(__file__).resolve().parents[2]
    if name == "scenario":
        return [path.read_bytes() for path in sorted((root / "experiments" / "scenarios").glob("*.toml"))]
    if name == "topology":
        return [path.read_bytes() for path in sorted((root / "topologies" / "networks").glob("*.toml"))]
    first = _core.Client(b"", bytes(range(16)), 2, 1428).greet(bytes(32), 0, b"early")
    return {
        "rest": [
            b'{"source": "T0", "destination": "T2", "destination_port": 5001, "rate_bps": 8.5e6}',
            b'{"source": "10.0.0.1", "destination": "10.0.0.2", "destination_port": 1, "rate_bps": 1,'
            b' "source_ports": [1, 2], "max_paths": 2, "paths": [{"nodes": ["a", "b"], "rate_bps": 1e6}]}',
            b'{"rate_bps": 1e6}',
        ],
        "hello": [first.bytes, first.bytes + _core.encode_close(2, "why")],
        "preamble": [
            Destination("10.0.0.3", 22).encode(),
            encode_answer(3, "no such name"),
            b"[::1]:22",
            b"10.0.0.0/8:22",
        ],
    }[name]
