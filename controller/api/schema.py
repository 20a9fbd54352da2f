"""What a client may send, checked field by field: the same for REST and gRPC.

What only the network can tell (unknown host, port in use, nothing free) is checked by
`controller.decide.admission`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from controller.errors import InvalidRequest
from controller.model.requests import (
    MAX_STREAMS,
    Failure,
    FlowRequest,
    LinkChange,
    PreviewRequest,
    RequestedPath,
    Scaling,
)
from topologies.validation import requirement

_B = TypeVar("_B", bound=BaseModel)

MAX_TIMEOUT_S = 30.0
"""A client may give its request so much time; then the controller gives it up by itself."""

# Strict: a rate of "5" or a port of true is a mistake to point out, not to guess about.
Rate = Annotated[float, Field(gt=0, le=1e13, allow_inf_nan=False, strict=True)]
LinkRate = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False, strict=True)]
LinkDelay = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False, strict=True)]
Port = Annotated[int, Field(ge=1, le=65535, strict=True)]
StreamCount = Annotated[int, Field(ge=1, le=MAX_STREAMS, strict=True)]
HostName = Annotated[str, Field(min_length=1, max_length=64)]
LinkName = Annotated[str, Field(min_length=3, max_length=80, pattern=r"^[^\s/]+-[^\s/]+$")]
FlowIdText = Annotated[str, Field(min_length=1, max_length=64)]


_PLACES = ("body", "query", "header", "path")
"""Where a field was sent; its name is enough."""


class RequestedPathBody(BaseModel):
    """A path given by hand."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="RequestedPath")

    nodes: tuple[HostName, ...] = Field(
        min_length=3,
        max_length=256,
        description="Host, switches, host.",
        examples=[["T0", "S0", "S4", "T2"]],
    )
    rate_bps: Rate = Field(description="Goodput on this path, bit/s.", examples=[4.25e6])


class FlowRequestBody(BaseModel):
    """Ask for a goodput from one host to another."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="FlowRequest")

    source: HostName = Field(
        description="Name or IP address of the sending host.", examples=["T0", "fd00::1"]
    )
    destination: HostName = Field(description="Name or IP address of the receiving host.", examples=["T2"])
    ip_version: Literal[4, 6] | None = Field(
        default=None,
        description="Version of IP of the flow's packets. Left out: that of an address given as source or "
        "destination; where both are names, 4 if they have such addresses.",
    )
    destination_port: Port = Field(description="Port on which the destination listens.", examples=[5001])
    protocol: Literal["tcp", "udp"] = Field(
        default="tcp", description="What the packets are of; a flow of UDP is for QUIC and its like."
    )
    rate_bps: Rate | None = Field(
        default=None,
        description="Goodput asked for, bit/s (application bytes). Optional where paths are given by hand.",
        examples=[8.5e6],
    )
    source_ports: tuple[Port, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_STREAMS,
        json_schema_extra={"uniqueItems": True},
        description="Ports that the source has bound, one for each stream at least; the flow uses the "
        "first ones. Left out: the controller picks unused ones from 61000 on.",
    )
    packet_bytes: int = Field(
        default=1514,
        ge=64,
        le=9018,
        strict=True,
        description="Ethernet frame of a full segment, without checksum.",
        examples=[590],
    )
    segment_overhead_bytes: int | None = Field(
        default=None,
        ge=42,
        le=154,
        strict=True,
        description="Ethernet, IP and TCP or UDP headers and options in that frame (66 with TCP timestamps). "
        "Left out: 54 of TCP, 42 of UDP, and 20 more over IPv6.",
    )
    objective: str | None = Field(
        default=None,
        max_length=64,
        description="How the rates are chosen; left out: the controller's default.",
        examples=["max_throughput_min_delay"],
    )
    paths: tuple[RequestedPathBody, ...] = Field(
        default=(),
        max_length=MAX_STREAMS,
        description="Paths and rates given by hand instead of computed.",
    )
    max_paths: StreamCount | None = Field(
        default=None, description="Use no more paths than this.", examples=[2]
    )
    streams: StreamCount | None = Field(
        default=None,
        description="Use exactly this number of paths, one stream each, even where fewer carry the rate.",
    )
    splitting: Literal["streams", "packets", "group"] = Field(
        default="streams",
        description="streams: one TCP connection for each path. packets: one connection whose packets a "
        "splitter in front of the ingress switch spreads over the paths. group: one connection that a select "
        "group of the ingress switch splits.",
    )
    ack_path: str | None = Field(
        default=None,
        pattern=r"^(shortest|reverse:(0|[1-9][0-9]?))$",
        description="Where the acknowledgements of a split flow go: `shortest` (the default), or "
        "`reverse:<index>`, back along one of its paths.",
        examples=["shortest", "reverse:0"],
    )
    lease_s: float | None = Field(
        default=None,
        gt=0,
        le=86400,
        strict=True,
        description="Seconds after which the flow ends unless renewed; left out: the controller's lease.",
    )

    @field_validator("source", "destination")
    @classmethod
    def _shortest(cls, name: str) -> str:
        """Write an IPv6 address in its shortest form, by which hosts are known."""
        try:
            return str(ipaddress.IPv6Address(name))
        except ValueError:
            return name

    @field_validator("source_ports")
    @classmethod
    def _distinct(cls, ports: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if ports is not None and len(set(ports)) < len(ports):
            raise ValueError("the same port is given twice; each stream needs one of its own")
        return ports

    def to_request(self) -> FlowRequest:
        """Return the request as the core takes it."""
        paths = tuple(RequestedPath(path.nodes, path.rate_bps) for path in self.paths)
        return FlowRequest(**{**self.__dict__, "paths": paths})


class RateChange(BaseModel):
    """Ask for another rate of a running flow."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate_bps: Rate = Field(description="Goodput asked for, bit/s.", examples=[4.0e6])


class LinkChangeBody(BaseModel):
    """What is different about a link from now on; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="LinkChange")

    rate_bps: LinkRate | None = Field(
        default=None, description="Wire rate of each direction, bit/s.", examples=[5e6]
    )
    delay_s: LinkDelay | None = Field(
        default=None, description="Propagation delay of each direction.", examples=[0.001]
    )
    enabled: Annotated[bool, Field(strict=True)] | None = Field(
        default=None, description="False: it may not be used; its flows are moved."
    )

    def to_change(self) -> LinkChange:
        """Return the change as the core takes it."""
        return LinkChange(self.rate_bps, self.delay_s, self.enabled)


class FailureBody(BaseModel):
    """What fails."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="Failure")

    links: tuple[LinkName, ...] = Field(
        default=(), max_length=1024, description="Named in either direction.", examples=[["S2-S3"]]
    )
    switches: tuple[HostName, ...] = Field(default=(), max_length=1024, examples=[["S2"]])


class ScalingBody(BaseModel):
    """Demands that are multiplied; flows keep their paths."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="Scaling")

    flow_id: FlowIdText | None = Field(
        default=None, description="Left out: all flows whose rates were not given by hand."
    )
    factor: float = Field(gt=0, le=1e6, allow_inf_nan=False, strict=True, examples=[2.0])


class PreviewBody(BaseModel):
    """What would happen if: these links and switches failed, then demands grew, then flows were requested."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="PreviewRequest")

    fail: FailureBody = FailureBody()
    scale: tuple[ScalingBody, ...] = Field(default=(), max_length=1024)
    add: tuple[FlowRequestBody, ...] = Field(
        default=(), max_length=64, description="Each finds those before it granted."
    )

    def to_request(self) -> PreviewRequest:
        """Return the request as the core takes it."""
        return PreviewRequest(
            fail=Failure(self.fail.links, self.fail.switches),
            scale=tuple(Scaling(each.flow_id, each.factor) for each in self.scale),
            add=tuple(each.to_request() for each in self.add),
        )


def invalid_request(errors: list[Any]) -> InvalidRequest:
    """Return the first of pydantic's errors in our own shape, naming the field as in `paths[0].rate_bps`."""
    error = errors[0]
    field = ""
    place, *parts = error["loc"] or ("",)
    if place not in _PLACES:
        parts = [place, *parts]
    for part in parts:
        if isinstance(part, int):
            field += f"[{part}]"
        else:
            field += f".{part}" if field else str(part)
    if error["type"] == "json_invalid":
        reason = f"must be JSON: {error['ctx']['error']} at character {parts[0]}"
        return InvalidRequest(place, reason)
    if error["type"] == "extra_forbidden":
        return InvalidRequest(field, "there is no such field")
    if error["type"] == "missing" and place in _PLACES:
        where = f" in the request's {place}" if field else ": a JSON object"
        return InvalidRequest(field or place, f"must be given{where}")
    return InvalidRequest(field or place, requirement(error))


def parse(fields: dict[str, Any]) -> FlowRequest:
    """Return the request with these fields.

    Raises:
        InvalidRequest: naming the first field that is wrong.
    """
    return _checked(FlowRequestBody, fields).to_request()


def parse_preview(fields: dict[str, Any]) -> PreviewRequest:
    """Return the preview request with these fields.

    Raises:
        InvalidRequest: naming the first field that is wrong.
    """
    return _checked(PreviewBody, fields).to_request()


def check_spare_ports(ports: Sequence[int]) -> tuple[int, ...]:
    """Return the ports that a host has bound for further streams of a flow.

    Raises:
        InvalidRequest: They are too many, or one is none.
    """
    if len(ports) > MAX_STREAMS or not all(0 < port < 65536 for port in ports):
        raise InvalidRequest("spare_ports", f"are at most {MAX_STREAMS} ports from 1 to 65535")
    return tuple(ports)


def check_timeout(timeout_s: float) -> float | None:
    """Return the seconds that a client gives its request; 0 is none.

    Raises:
        InvalidRequest: it is no such time.
    """
    if not 0 <= timeout_s <= MAX_TIMEOUT_S:
        raise InvalidRequest("timeout_s", f"must be from 0 to {MAX_TIMEOUT_S:g}, not {timeout_s:g}")
    return timeout_s or None


def check_rate(rate_bps: float) -> float:
    """Return a rate (goodput, bit/s) that a flow may be changed to.

    Raises:
        InvalidRequest: it is no such rate.
    """
    return _checked(RateChange, {"rate_bps": rate_bps}).rate_bps


def _checked(kind: type[_B], fields: dict[str, Any]) -> _B:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise invalid_request(error.errors()) from None
