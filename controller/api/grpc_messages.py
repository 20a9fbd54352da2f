"""The core's views as messages of mstcp/proto/control.proto, and requests back.

Views and messages have the same names for the same things, so most of this is filling in by name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TypeVar, cast

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from controller.api.schema import FlowRequestBody, parse
from controller.errors import InvalidRequest, RequestError
from controller.model.client_events import ClientEvent
from controller.model.preview_views import PreviewView
from controller.model.requests import FlowRequest
from controller.model.views import FlowView, SplitView
from mstcp.proto import control_pb2

_M = TypeVar("_M", bound=Message)

_NEVER_LEFT_OUT = ("source", "destination", "destination_port")


def message_of(kind: type[_M], view: object, **given: Any) -> _M:
    """Return a message with what a view has under the names of its fields; None is left out.

    Args:
        kind: Of the message.
        view: Its attributes are values, views or tuples of them.
        given: Fields that are otherwise.
    """
    for field in kind.DESCRIPTOR.fields:
        value = given.get(field.name, getattr(view, field.name, None))
        if value is None or field.name in given:
            continue
        if field.message_type is not None:
            made = GetMessageClass(cast(Any, field.message_type))
            is_many = isinstance(value, tuple)
            value = [message_of(made, each) for each in value] if is_many else message_of(made, value)
        given[field.name] = value
    return kind(**given)


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
    values = {name: getattr(message, name) for name in FlowRequestBody.model_fields}
    fields = {name: value for name, value in values.items() if value or name in _NEVER_LEFT_OUT}
    if message.source_ports:
        fields["source_ports"] = tuple(message.source_ports)
    if message.paths:
        paths = ({"nodes": tuple(path.nodes), "rate_bps": path.rate_bps} for path in message.paths)
        fields["paths"] = tuple(paths)
    else:
        fields["rate_bps"] = message.rate_bps
    return fields


def allocation_of(flow: FlowView) -> control_pb2.Allocation:
    """Return what a flow was given."""
    # Made for each flow that is installed or changed: by name it would take three times as long.
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
    ingress = {"ingress_switch": split.ingress.switch, "ingress_port": split.ingress.port}
    return message_of(control_pb2.Split, split, **ingress)


def flow_of(flow: FlowView) -> control_pb2.Flow:
    """Return a flow with all that is known of it."""
    return message_of(control_pb2.Flow, flow, allocation=allocation_of(flow))


def error_of(error: RequestError) -> control_pb2.Error:
    """Return why something was refused."""
    return message_of(control_pb2.Error, error, code=error.code.value)


def refusal(request_id: int, error: RequestError) -> control_pb2.ServerMessage:
    """Return the answer to a request that is refused."""
    return control_pb2.ServerMessage(request_id=request_id, error=error_of(error))


def ended(flow_id: str, reason: str) -> control_pb2.ServerMessage:
    """Return the notification that a flow has ended."""
    return control_pb2.ServerMessage(ended=control_pb2.FlowEnded(flow_id=flow_id, reason=reason))


def preview_of(view: PreviewView) -> control_pb2.PreviewResponse:
    """Return what would happen."""
    before_bps, after_bps = view.summary.rate_before_bps, view.summary.rate_after_bps
    rates = {"rate_before_bps": before_bps, "rate_after_bps": after_bps}
    return message_of(control_pb2.PreviewResponse, view, **rates)


def event_of(event: ClientEvent, event_id: str) -> control_pb2.WatchEvent:
    """Return something that happened."""
    return message_of(control_pb2.WatchEvent, event, id=event_id, data_json=json.dumps(dict(event.data)))
