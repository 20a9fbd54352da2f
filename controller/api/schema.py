"""Checks what a client sends, by the fields of `controller.model.requests`: the same for REST and gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from controller.errors import InvalidRequest
from controller.model.requests import MAX_STREAMS, FlowRequest, PreviewRequest, RateChange
from topologies.validation import join_place, requirement

_T = TypeVar("_T")

_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {
    kind: TypeAdapter(kind) for kind in (FlowRequest, PreviewRequest, RateChange)
}
"""Checks requests that come over gRPC."""

_PLACES = ("body", "query", "header", "path")
"""Where a field was sent; its name is enough."""


def invalid_request(errors: list[Any]) -> InvalidRequest:
    """Return the first of pydantic's errors in our own shape, naming the field as in `paths[0].rate_bps`."""
    error = errors[0]
    place, *parts = error["loc"] or ("",)
    field = join_place("", parts if place in _PLACES else (place, *parts))
    if error["type"] == "json_invalid":
        where = f" at character {parts[0]}" if parts else ""
        return InvalidRequest(place, f"must be JSON: {error['ctx']['error']}{where}")
    if error["type"] == "unexpected_keyword_argument":
        return InvalidRequest(field, "there is no such field")
    if error["type"] == "missing" and place in _PLACES:
        where = f" in the request's {place}" if field else ": a JSON object"
        return InvalidRequest(field or place, f"must be given{where}")
    return InvalidRequest(field or place, requirement(error))


def parse(fields: Mapping[str, Any]) -> FlowRequest:
    """Return the request for a flow with these fields; raises as `checked`."""
    return checked(FlowRequest, fields)


def checked(kind: type[_T], fields: Mapping[str, Any]) -> _T:
    """Return a request of a kind with these fields.

    Raises:
        InvalidRequest: naming the first field that is wrong.
    """
    try:
        request: _T = _ADAPTERS[kind].validate_python(fields)
    except ValidationError as error:
        raise invalid_request(error.errors()) from None
    return request


def check_spare_ports(ports: Sequence[int]) -> tuple[int, ...]:
    """Return the ports that a host has bound for further streams of a flow.

    Raises:
        InvalidRequest: They are too many, or one is none.
    """
    if len(ports) > MAX_STREAMS or not all(0 < port < 65536 for port in ports):
        raise InvalidRequest("spare_ports", f"are at most {MAX_STREAMS} ports from 1 to 65535")
    return tuple(ports)
