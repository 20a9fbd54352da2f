"""Fuzz targets of the Python parsers: each takes any bytes and accepts the documented errors alone."""

from __future__ import annotations

import atexit
import functools
import shutil
import socket
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from pydantic import TypeAdapter, ValidationError

from controller.api.grpc_messages import fields_of
from controller.api.schema import checked, invalid_request
from controller.compile.pinned import pinned_rule
from controller.configuration.file import configure
from controller.errors import ConfigError, InvalidRequest
from controller.model import arp, lldp, ndp
from controller.model.host_frames import parse_neighbour, reply
from controller.model.messages import InstallRules
from controller.model.neighbour import NeighbourMessage
from controller.model.requests import FlowRequest, LinkChange, PreviewRequest, RateChange
from controller.model.rules import Match, Output, Rule, TcpConnection, flow_cookie
from controller.openflow.connection import Connection
from controller.openflow.counters import CounterReading
from controller.openflow.decoding import Malformed
from controller.openflow.encoding import encode
from controller.openflow.session import Leadership
from controller.openflow.switches import Switches
from controller.state.hosts import HostTable
from controller.state.live_network import LiveNetwork
from experiments.errors import ExperimentError
from experiments.model import scenario
from mstcp import MstcpError
from mstcp.endpoints import Destination, parse_endpoint, parse_rule
from mstcp.proto import control_pb2
from mstcp.stats import parse_tcp_info
from mstcp.tools.preamble import (
    ANSWER_BYTES,
    REQUEST_BYTES,
    check_answer,
    decode_request,
    encode_answer,
    encode_request,
    host_bytes,
)
from switch.model import ModelSwitch
from switch.model import openflow as wire
from tests.paths import ROOT
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
    kinds: tuple[type[Any], ...] = (FlowRequest, RateChange, LinkChange, PreviewRequest)
    for kind in kinds:
        try:
            TypeAdapter(kind).validate_json(data)
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


def preamble(data: bytes) -> None:
    """What proxies say to each other."""
    try:
        head = data[:REQUEST_BYTES]
        length = host_bytes(head)
        destination = decode_request(head, data[REQUEST_BYTES : REQUEST_BYTES + length])
        assert encode_request(destination) == data[: REQUEST_BYTES + length]
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


@functools.cache
def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    atexit.register(listener.close)
    return listener


def openflow(data: bytes) -> None:
    """What a switch sends before and after it is admitted; the connection of one that sends nonsense ends."""
    for is_admitted in (False, True):
        switches = Switches(lambda *_: None, b"a key", Leadership(7))
        theirs = socket.create_connection(_listener().getsockname())
        ours, _ = _listener().accept()
        with ours, theirs:
            connection = Connection(ours, "a switch", switches.received, lambda _: None)
            switches.opened(connection)
            theirs.sendall((_admission() if is_admitted else b"") + data)
            try:
                connection.read()
            except Malformed as error:
                assert str(error) or repr(error)
            switches.tick(1e9)
            switches.closed(connection)


@functools.cache
def _admission() -> bytes:
    """Return what a switch says until it is admitted."""
    switch, answers, switches = (
        ModelSwitch(1, frozenset({1, 2})),
        [],
        Switches(lambda *_: None, b"", Leadership(7)),
    )
    theirs, ours = socket.socketpair()
    with theirs, ours:
        connection = Connection(ours, "a switch", switches.received, lambda _: None)
        switches.opened(connection)
        data = switch.connect()
        while data:
            answers.append(data)
            theirs.sendall(data)
            connection.read()
            theirs.settimeout(0.1)
            try:
                data = switch.receive(theirs.recv(1 << 16))
            except TimeoutError:
                break
    return b"".join(answers)


def counters(data: bytes) -> None:
    """What a switch says it has counted, in any number of messages."""
    reading = CounterReading(count(1).__next__, True, True)
    try:
        for _, transaction, whole in wire.take_messages(bytearray(data)):
            if transaction in reading.unanswered:
                reading.take(transaction, whole)
    except (Malformed, wire.MalformedMessage) as error:
        assert str(error)


def configuration(data: bytes) -> None:
    """The controller's configuration file; what is wrong with it is a sentence with its place."""
    try:
        configure(data.decode(errors="replace"), "controller.toml")
    except ConfigError as error:
        assert "controller.toml" in str(error)


def lldp_frame(data: bytes) -> None:
    """Discovery packets, with a signature that is right or not."""
    end = lldp.parse(data)
    assert end is None or lldp.parse(lldp.build(*end)) == end
    assert lldp.parse(data, b"another key") is None or data == b""


def neighbour_frame(data: bytes) -> None:
    """ARP and neighbour discovery: what is one can be answered, and its sender is learned or not."""
    packet = parse_neighbour(data)
    if packet is not None:
        assert parse_neighbour(reply(packet, "0a:00:00:00:00:01")) is not None
        live = LiveNetwork(load_topology("butterfly"))
        HostTable(live).sight("S0", 1, packet, 0.0)


def grpc_message(data: bytes) -> None:
    """Messages of a gRPC session."""
    try:
        message = control_pb2.ClientMessage.FromString(data)
    except DecodeError:
        return
    try:
        checked(FlowRequest, fields_of(message.request))
        checked(RateChange, {"rate_bps": message.change.rate_bps})
    except InvalidRequest as error:
        assert error.reason


TARGETS: dict[str, Target] = {
    "openflow": openflow,
    "counters": counters,
    "configuration": configuration,
    "lldp": lldp_frame,
    "neighbours": neighbour_frame,
    "grpc": grpc_message,
    "rest": rest,
    "scenario": scenario_file,
    "topology": topology_file,
    "preamble": preamble,
}


def seeds(name: str) -> list[bytes]:
    """Return inputs that make sense, to begin with."""
    if name == "scenario":
        return [path.read_bytes() for path in sorted((ROOT / "experiments" / "scenarios").glob("*.toml"))]
    if name == "topology":
        return [path.read_bytes() for path in sorted((ROOT / "topologies" / "networks").glob("*.toml"))]
    if name in ("openflow", "counters", "configuration", "lldp", "neighbours", "grpc"):
        return _controller_seeds(name)
    return {
        "rest": [
            b'{"source": "T0", "destination": "T2", "destination_port": 5001, "rate_bps": 8.5e6}',
            b'{"source": "10.0.0.1", "destination": "10.0.0.2", "destination_port": 1, "rate_bps": 1,'
            b' "source_ports": [1, 2], "max_paths": 2, "paths": [{"nodes": ["a", "b"], "rate_bps": 1e6}]}',
            b'{"rate_bps": 1e6}',
        ],
        "preamble": [
            encode_request(Destination("10.0.0.3", 22)),
            encode_answer(3, "no such name"),
            b"[::1]:22",
            b"10.0.0.0/8:22",
        ],
    }[name]


_CONFIGURATION = (
    b"""topology = "butterfly"
[routing]
objective = "fair"
[counters]
interval_s = 2.0
[[tokens]]
name = "alice"
role = "request"
sha256 = "%064d"
[links.S0-S4]
rate_bps = 5e6
"""
    % 1
)


def _counted() -> bytes:
    switch = ModelSwitch(1, frozenset({1, 2}))
    connection = TcpConnection("10.0.0.1", "10.0.0.2", 40001, 5001)
    switch.receive(encode(InstallRules(1, (pinned_rule(connection, Output(2), flow_cookie(1)),), 5), 0))
    return switch.receive(CounterReading(count(1).__next__, True, True).requests)


def _controller_seeds(name: str) -> list[bytes]:
    question = arp.build_reply(
        NeighbourMessage(True, "0a:00:00:00:00:02", "10.0.0.2", "10.0.0.1"), "0a:00:00:00:00:01"
    )
    rule = Rule(1, 100, Match(eth_type=0x0800, destination_ip="10.0.0.1"), Output(3), 1)
    installed = encode(InstallRules(1, (rule,), 5), 0)
    request = control_pb2.FlowRequest(
        source="T0", destination="T2", destination_port=5001, rate_bps=1e6, source_ports=[40001]
    )
    return {
        "openflow": [
            wire.packet_in(1, lldp.build(1, 2)) + wire.message(wire.Kind.BARRIER_REPLY, 5),
            wire.packet_in(1, question),
            wire.error(5, wire.ErrorReason.TABLE_FULL, installed),
            wire.message(wire.Kind.ECHO_REQUEST, 1, b"alive?"),
            wire.message(
                wire.Kind.PORT_STATUS, 0, bytes(8) + wire.port_description(1, wire.PortState.UP, "p")
            ),
        ],
        "counters": [_counted()],
        "configuration": [_CONFIGURATION],
        "lldp": [lldp.build(1, 2), lldp.build(2**64 - 1, 2**32 - 1, b"key")],
        "neighbours": [question, ndp.build_probe("fd00::2")],
        "grpc": [control_pb2.ClientMessage(request_id=1, request=request).SerializeToString()],
    }[name]
