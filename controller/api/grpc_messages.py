"""The core's views as messages of mstcp/proto/control.proto, and requests back, by the names of fields."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from controller.api.schema import check_spare_ports, checked
from controller.errors import InvalidRequest, RequestError
from controller.model.callers import Caller
from controller.model.client_events import ClientEvent
from controller.model.events import (
    Event,
    FlowChanged,
    FlowReleased,
    LeaseRenewed,
    StreamsReported,
)
from controller.model.requests import RateChange
from controller.model.views import FlowView
from mstcp.proto import control_pb2

_M = TypeVar("_M", bound=Message)


def message_of(kind: type[_M], view: Any, **given: Any) -> _M:
    """Return a message with what a view has under the names of its fields; None is left out.

    `given` are fields that are otherwise.
    """
    for name, made in _fields(kind.DESCRIPTOR, view.__class__):
        value = getattr(view, name)
        if value is None or name in given:
            continue
        if made is not None:
            is_many = isinstance(value, tuple)
            value = [message_of(made, each) for each in value] if is_many else message_of(made, value)
        given[name] = value
    return kind(**given)


@cache
def _fields(message: Descriptor, view: type[Any]) -> Sequence[tuple[str, type[Message] | None]]:
    """Return the fields that a message and a view share, with the class of those that are messages."""
    has = {field.name for field in dataclasses.fields(view)}
    return [
        (field.name, None if field.message_type is None else GetMessageClass(cast(Any, field.message_type)))
        for field in message.fields
        if field.name in has
    ]


def fields_of(message: Message) -> dict[str, Any]:
    """Return the fields that are set in a request, as JSON has them; 0 and empty ones are left out."""
    return {field.name: _value(field, value) for field, value in message.ListFields()}


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.is_repeated:
        return tuple(map(fields_of, value) if field.message_type else value)
    return fields_of(value) if field.message_type else value


def asked_by(body: object, caller: Caller, session: str = "") -> Callable[[int], Event]:
    """Return what makes an event of a client's message, unless it is a request for a flow, and of a token.

    Raises:
        InvalidRequest: Naming the first field that is wrong.
    """
    if isinstance(body, control_pb2.FlowChange):
        rate_bps = checked(RateChange, {"rate_bps": body.rate_bps}).rate_bps
        change = body.flow_id, rate_bps, caller, _revisions(body)
        return lambda token: FlowChanged(token, *change)
    if isinstance(body, control_pb2.FlowRelease):
        release = body.flow_id, caller, _revisions(body)
        return lambda token: FlowReleased(token, *release)
    if isinstance(body, control_pb2.LeaseRenewal):
        flow_ids = tuple(body.flow_ids)
        return lambda token: LeaseRenewed(token, flow_ids, session, caller)
    if isinstance(body, control_pb2.StreamsReport):
        ports = frozenset(body.open_ports), frozenset(body.failed_ports), check_spare_ports(body.spare_ports)
        flow_id = body.flow_id
        return lambda token: StreamsReported(token, flow_id, *ports, caller)
    raise InvalidRequest("body", "is missing or unknown to this controller")


def _revisions(message: control_pb2.FlowChange | control_pb2.FlowRelease) -> frozenset[int] | None:
    return frozenset(message.if_revisions) or None


def allocation_of(flow: FlowView) -> control_pb2.Allocation:
    """Return what a flow was given."""
    return message_of(control_pb2.Allocation, flow)


def error_of(error: RequestError) -> control_pb2.Error:
    """Return why something was refused."""
    return control_pb2.Error(code=error.code.value, field=error.field, reason=error.reason)


def refusal(request_id: int, error: RequestError) -> control_pb2.ServerMessage:
    """Return the answer to a request that is refused."""
    return control_pb2.ServerMessage(request_id=request_id, error=error_of(error))


def ended(flow_id: str, reason: str) -> control_pb2.ServerMessage:
    """Return the notification that a flow has ended."""
    return control_pb2.ServerMessage(ended=control_pb2.FlowEnded(flow_id=flow_id, reason=reason))


def event_of(event: ClientEvent, event_id: str) -> control_pb2.WatchEvent:
    """Return something that happened."""
    return message_of(control_pb2.WatchEvent, event, id=event_id, data_json=json.dumps(dict(event.data)))
