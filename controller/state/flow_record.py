"""Flows as records of the store, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from controller.compile.split import Split
from controller.state.flow import CLOSE_TIMEOUT_S, OPEN_TIMEOUT_S, Flow, FlowState, Stream, StreamState
from controller.state.hosts import Host
from controller.state.live_network import arcs_of
from controller.state.state import State
from controller.wire import framing_of
from topologies.model import ip_version

FLOW = "flow"
"""Kind of the records; their keys are the flows' ids."""

FLOW_LEASE = "lease"
"""Kind of the records that say, by being written, that a flow's lease was renewed; replicas hear it."""


def record_of(flow: Flow) -> dict[str, Any]:
    """Return all that a restarted controller must know of an active flow."""
    return {
        "number": flow.number,
        "generation": flow.generation,
        "source": flow.source.name,
        "destination": flow.destination.name,
        "addresses": [flow.source.ip, flow.destination.ip],
        "destination_port": flow.destination_port,
        "protocol": flow.protocol,
        "requested_bps": flow.requested_bps,
        "packet_bytes": flow.framing.packet_bytes,
        "segment_overhead_bytes": flow.framing.segment_overhead_bytes,
        "objective": flow.objective,
        "streams": [_record_of_stream(stream) for stream in flow.streams],
        "given_bps": flow.given_bps,
        "lease_s": flow.lease_s,
        "belongs_to": flow.belongs_to,
        "revision": flow.revision,
        "split": None
        if flow.split is None
        else [flow.split.mode, flow.split.tag, flow.split.acks, list(flow.split.ack_path)],
        "repeated_as": flow.repeated_as,
    } | (_growth_of(flow) if flow.max_streams else {})


def _record_of_stream(stream: Stream) -> list[Any]:
    fields = [stream.source_port, list(stream.path), stream.rate_bps, stream.delay_s, stream.generation]
    return fields if stream.is_open else [*fields, stream.state.value]


def _growth_of(flow: Flow) -> dict[str, Any]:
    return {
        "max_streams": flow.max_streams,
        "spare_ports": list(flow.spare_ports),
        "leaving": [_record_of_stream(stream) for stream in flow.leaving],
    }


_TIMEOUT_S: Mapping[StreamState, float] = {
    StreamState.OPEN: math.inf,
    StreamState.OPENING: OPEN_TIMEOUT_S,
    StreamState.LEAVING: CLOSE_TIMEOUT_S,
}


def _stream_of(record: Sequence[Any], now: float) -> Stream:
    """Return the stream of a record; its host has the whole time once more to open or close it."""
    port, path, rate_bps, delay_s, generation, *states = record
    state = StreamState(states[0]) if states else StreamState.OPEN
    return Stream(port, tuple(path), rate_bps, delay_s, generation, state, now + _TIMEOUT_S[state])


def _host_of(record: Mapping[str, Any], end: str, ip: str, state: State) -> Host | None:
    """Return a host of a record; None where the host no longer has that address."""
    host = state.hosts.find(ip)
    return host if host is not None and host.name == record[end] else None


def flow_of(flow_id: str, record: Mapping[str, Any], state: State, now: float) -> Flow | None:
    """Return the flow of a record, with a whole lease; None where the network no longer has its hosts."""
    ends = zip(("source", "destination"), record["addresses"], strict=True)
    source, destination = (_host_of(record, end, ip, state) for end, ip in ends)
    if source is None or destination is None:
        return None
    split, protocol = None, record.get("protocol", "tcp")
    if record["split"] is not None:
        mode, tag, acks, ack_path = record["split"]
        split = Split(mode, tag, acks, tuple(ack_path))
    flow = Flow(
        number=record["number"],
        id=flow_id,
        source=source,
        destination=destination,
        destination_port=record["destination_port"],
        requested_bps=record["requested_bps"],
        protocol=protocol,
        framing=framing_of(
            protocol, record["packet_bytes"], record["segment_overhead_bytes"], ip_version(source.ip)
        ),
        objective=record["objective"],
        streams=[_stream_of(stream, now) for stream in record["streams"]],
        lease_s=record["lease_s"],
        expires_at=now + record["lease_s"],
        owner="",  # the session that it was told by is over
        belongs_to=record.get("belongs_to", ""),
        revision=record.get("revision", 0),
        split=split,
        state=FlowState.ACTIVE,
        generation=record["generation"],
        given_bps=None if record["given_bps"] is None else tuple(record["given_bps"]),
        max_streams=record.get("max_streams", 0),
        spare_ports=tuple(record.get("spare_ports", ())),
        repeated_as=None if record.get("repeated_as") is None else tuple(record["repeated_as"]),
    )
    leaving = (_stream_of(stream, now) for stream in record.get("leaving", ()))
    flow.leaving = tuple(s for s in leaving if all(arc in state.live.arcs for arc in arcs_of(s.path)))
    arcs = [arc for path in flow.routes() for arc in arcs_of(path)]
    if any(arc not in state.live.arcs for arc in arcs):
        return None
    if split is not None:
        split.group = flow.group(state.live.ports)
    return flow
