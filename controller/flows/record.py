"""Flows as records of the store, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.core.state import State
from controller.flows.flow import Flow, Stream
from controller.network.live_network import arcs_of
from controller.rules.split import Split
from controller.wire import Framing

__all__ = ["FLOW", "flow_of", "record_of"]

FLOW = "flow"
"""Kind of the records; their keys are the flows' ids."""


def record_of(flow: Flow) -> dict[str, Any]:
    """Return all that a restarted controller must know of an active flow; addresses are the topology's."""
    return {
        "number": flow.number,
        "generation": flow.generation,
        "source": flow.source.name,
        "destination": flow.destination.name,
        "destination_port": flow.destination_port,
        "requested_bps": flow.requested_bps,
        "packet_bytes": flow.framing.packet_bytes,
        "segment_overhead_bytes": flow.framing.segment_overhead_bytes,
        "objective": flow.objective,
        "streams": [[s.source_port, list(s.path), s.rate_bps, s.delay_s, s.generation] for s in flow.streams],
        "given_bps": flow.given_bps,
        "lease_s": flow.lease_s,
        "belongs_to": flow.belongs_to,
        "revision": flow.revision,
        "split": None
        if flow.split is None
        else [flow.split.mode, flow.split.tag, flow.split.acks, list(flow.split.ack_path)],
    }


def flow_of(flow_id: str, record: Mapping[str, Any], state: State, now: float) -> Flow | None:
    """Return the flow of a record, with a whole lease from now on; None where the network has it no more."""
    source, destination = state.hosts.find(record["source"]), state.hosts.find(record["destination"])
    if source is None or destination is None:
        return None
    split = None
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
        framing=Framing(record["packet_bytes"], record["segment_overhead_bytes"]),
        objective=record["objective"],
        streams=[Stream(port, tuple(path), *rest) for port, path, *rest in record["streams"]],
        lease_s=record["lease_s"],
        expires_at=now + record["lease_s"],
        owner="",  # the session that it was told by is over
        belongs_to=record.get("belongs_to", ""),
        revision=record.get("revision", 0),
        split=split,
        state="active",
        generation=record["generation"],
        given_bps=None if record["given_bps"] is None else tuple(record["given_bps"]),
    )
    arcs = [arc for path in flow.routes() for arc in arcs_of(path)]
    if any(arc not in state.live.arcs for arc in arcs):
        return None
    if split is not None:
        split.group = flow.group(state.live.ports)
    return flow
