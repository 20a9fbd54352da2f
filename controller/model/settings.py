"""How the controller behaves: the settings of the configuration file, with what they do and may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gomr import OBJECTIVES
from pydantic import AfterValidator, ConfigDict, Field

from controller.model.api_field import api_field
from controller.wire import DEFAULT_ACK_RATIO


def _known(objective: str) -> str:
    if objective not in OBJECTIVES:
        raise ValueError(f"there is no objective {objective!r}; choose one of {', '.join(OBJECTIVES)}")
    return objective


_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
_Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False, strict=True)]
_Seconds = Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False, strict=True)]


class _Section:
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Routing(_Section):
    """How flows and other traffic are routed."""

    objective: Annotated[str, AfterValidator(_known)] = api_field(
        "objective of requests that name none", "max_throughput_min_delay"
    )
    default_routing: Literal["shortest", "ecmp"] = api_field(
        "route traffic without an allocation over the path of least delay, or spread its connections over "
        "all paths of least delay",
        "shortest",
    )
    lease_s: _Positive = api_field("end a flow that was not renewed for this time", 30.0)
    ack_ratio: _Share = api_field(
        "load of the ACKs on the reverse path for each bit of data, as of a 54-byte ACK for two 590-byte "
        "packets",
        DEFAULT_ACK_RATIO,
    )
    reserved_share: _Share = api_field(
        "share of every link that is not allocated to flows, for traffic without an allocation", 0.0
    )
    min_gain: _Share = api_field(
        "move a running flow only where it gains more than this share of what it asked for", 0.01
    )
    moves_per_s: _Positive = api_field("move no more running flows than this to better paths", 50.0)
    fast_failover: bool = api_field(
        "let switches heal a port that goes down by themselves", True, strict=True
    )
    policing_burst_s: _Seconds = api_field(
        "drop what a flow sends beyond its rate where it enters the network, with a burst of what that rate "
        "carries in this time; 0: nothing is dropped",
        0.0,
    )
    solve_limit_s: _Positive = api_field("take the best rates that a solve finds in this time", 10.0)
    planning_s: _Seconds = api_field(
        "delay before each request is answered; stands for the processing time in emulations in virtual "
        "time, where processing takes none",
        0.0,
    )


@dataclass(frozen=True)
class Discovery(_Section):
    """How links, switches and hosts are watched."""

    probe_interval_s: _Positive = api_field(
        "interval of the LLDP probes of each port; longer in networks with many ports", 0.1
    )
    silence_s: _Positive = api_field(
        "count a link as lost when its probes were unanswered for this time", 0.4
    )
    switch_grace_s: _Positive = api_field(
        "assume for this time that a switch whose connection ended forwards as before", 10.0
    )
    host_age_s: _Positive = api_field("forget a learned host that says nothing for this time", 300.0)
    confirm_timeout_s: _Positive = api_field(
        "fail a request whose rules a switch has not confirmed after this time", 3.0
    )


@dataclass(frozen=True)
class Counters(_Section):
    """How the load of links and flows is measured, and what follows from it."""

    interval_s: _Seconds = api_field(
        "interval at which each switch is asked for its port and flow counters; longer in large networks; 0 "
        "turns this off",
        1.0,
    )
    messages_per_s: _Positive = api_field(
        "send and get no more questions for counters and answers than this", 40.0
    )
    yielded_share: _Share = api_field(
        "leave at most this share of a link to traffic that nobody asked for", 0.5
    )


@dataclass(frozen=True)
class Settings(Routing, Discovery):
    """How the core behaves.

    Attributes:
        counters: How load is measured.
        lldp_key: Signs probes, so that hosts cannot forge them.
        replicated: Others follow the store, so that it is told of leases too.
        boot_id: Begins the ids of flows where nothing else makes them.
    """

    counters: Counters = Counters()
    lldp_key: bytes = b""
    replicated: bool = False
    boot_id: str = "f"
