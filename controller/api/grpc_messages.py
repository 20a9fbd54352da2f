"""The core's views as messages of mstcp/proto/control.proto, and requests back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from controller.api.event_history import ClientEvent
from controller.api.schema import parse
from controller.errors import InvalidRequest, RequestError
from controller.model.preview_views import PreviewPathView, PreviewView
from controller.model.requests import FlowRequest
from controller.model.views import FlowView, LinkView, SplitView
from mstcp.proto import control_pb2

__all__ = [
    "allocation_of",
    "ended",
    "error_of",
    "event_of",
    "flow_of",
    "link_of",
    "preview_of",
    "refusal",
    "request_fields",
    "session_request",
]


def request_fields(message: control_pb2.FlowRequest) -> dict[str, Any]:
    """Return a request's fields as JSON has them; what is 0 or empty in the message was left out.

    Raises:
        InvalidRequest: `may_grow` is set.
    """
    if message.may_grow:
        raise InvalidRequest(
            "may_grow", "is for flows of a Session, which is told of new streams: leave it out"
        )
    return _fields(message)


def session_request(message: control_pb2.FlowRequest) -> FlowRequest:
    """Return a request of a session, which is told of streams that are added and taken off.

    Raises:
        InvalidRequest: Naming the first field that is wrong.
    """
    return replace(parse(_fields(message)), may_grow=message.may_grow)


def _fields(message: control_pb2.FlowRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "source": message.source,
        "destination": message.destination,
        "destination_port": message.destination_port,
        "source_ports": tuple(message.source_ports) or None,
        "rate_bps": message.rate_bps,
        "protocol": message.protocol or "tcp",
        "objective": message.objective or None,
        "splitting": message.splitting or "streams",
        "ack_path": message.ack_path or None,
        "max_paths": message.max_paths or None,
        "streams": message.streams or None,
        "lease_s": message.lease_s or None,
        "paths": tuple({"nodes": tuple(path.nodes), "rate_bps": path.rate_bps} for path in message.paths),
    }
    if message.paths and message.rate_bps == 0:
        del fields["rate_bps"]
    if message.packet_bytes:
        fields["packet_bytes"] = message.packet_bytes
    if message.segment_overhead_bytes:
        fields["segment_overhead_bytes"] = message.segment_overhead_bytes
    return fields


def allocation_of(flow: FlowView) -> control_pb2.Allocation:
    """Return what a flow was given."""
    return control_pb2.Allocation(
        flow_id=flow.flow_id,
        requested_bps=flow.requested_bps,
        rate_bps=flow.rate_bps,
        streams=[
            control_pb2.Stream(
                source_port=stream.source_port,
                rate_bps=stream.rate_bps,
                delay_s=stream.delay_s,
                path=stream.path,
                wire_bps=stream.wire_bps,
                measured_bps=stream.measured_bps,
                is_opening=stream.is_opening,
            )
            for stream in flow.streams
        ],
        lease_s=flow.lease_s,
        split=None if flow.split is None else _split(flow.split),
        revision=flow.revision,
    )


def _split(split: SplitView) -> control_pb2.Split:
    return control_pb2.Split(
        ingress_switch=split.ingress.switch,
        ingress_port=split.ingress.port,
        shares=split.shares,
        stamps=split.stamps,
        acks=split.acks,
    )


def flow_of(flow: FlowView) -> control_pb2.Flow:
    """Return a flow with all that is known of it."""
    return control_pb2.Flow(
        allocation=allocation_of(flow),
        state=flow.state,
        owner=flow.owner or "",
        source=flow.source,
        destination=flow.destination,
        destination_port=flow.destination_port,
        objective=flow.objective or "",
        splitting=flow.splitting,
        expires_in_s=flow.expires_in_s,
        lost_links=flow.lost_links,
        may_grow=flow.may_grow,
        protocol=flow.protocol,
    )


def link_of(link: LinkView) -> control_pb2.Link:
    """Return one direction of a link."""
    return control_pb2.Link(
        link=link.link,
        capacity_bps=link.capacity_bps,
        delay_s=link.delay_s,
        up=link.up,
        enabled=link.enabled,
        allocated_bps=link.allocated_bps,
        free_bps=link.free_bps,
        measured_bps=link.measured_bps,
        unrequested_bps=link.unrequested_bps,
    )


def error_of(error: RequestError) -> control_pb2.Error:
    """Return why something was refused."""
    return control_pb2.Error(code=error.code.value, field=error.field, reason=error.reason)


def refusal(request_id: int, error: RequestError) -> control_pb2.ServerMessage:
    """Return the answer to a request that is refused."""
    return control_pb2.ServerMessage(request_id=request_id, error=error_of(error))


def ended(flow_id: str, reason: str) -> control_pb2.ServerMessage:
    """Return the notification that a flow has ended."""
    return control_pb2.ServerMessage(ended=control_pb2.FlowEnded(flow_id=flow_id, reason=reason))


def preview_of(view: PreviewView) -> control_pb2.PreviewResponse:
    """Return what would happen."""
    return control_pb2.PreviewResponse(
        added=[
            control_pb2.PreviewAdded(
                granted=added.granted,
                requested_bps=added.requested_bps,
                rate_bps=added.rate_bps,
                paths=_paths(added.paths),
                refusal=None
                if added.refusal is None
                else control_pb2.Error(
                    code=added.refusal.code,
                    field=added.refusal.field,
                    reason=added.refusal.reason,
                ),
            )
            for added in view.added
        ],
        flows=[
            control_pb2.PreviewMoved(
                flow_id=moved.flow_id,
                outcome=moved.outcome,
                requested_bps=moved.requested_bps,
                rate_before_bps=moved.rate_before_bps,
                rate_after_bps=moved.rate_after_bps,
                paths_before=_paths(moved.paths_before),
                paths_after=_paths(moved.paths_after),
            )
            for moved in view.flows
        ],
        links=[
            control_pb2.PreviewLink(
                link=link.link,
                up=link.up,
                capacity_bps=link.capacity_bps,
                allocated_before_bps=link.allocated_before_bps,
                allocated_after_bps=link.allocated_after_bps,
            )
            for link in view.links
        ],
        rate_before_bps=view.summary.rate_before_bps,
        rate_after_bps=view.summary.rate_after_bps,
    )


def _paths(paths: Sequence[PreviewPathView]) -> list[control_pb2.PreviewPath]:
    return [
        control_pb2.PreviewPath(path=path.path, rate_bps=path.rate_bps, delay_s=path.delay_s)
        for path in paths
    ]


def event_of(event: ClientEvent, event_id: str) -> control_pb2.WatchEvent:
    """Return something that happened."""
    return control_pb2.WatchEvent(
        id=event_id,
        kind=event.kind,
        time_s=event.time_s,
        text=event.text,
        data_json=json.dumps(dict(event.data)),
    )
