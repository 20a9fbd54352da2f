"""Everything that changes while a network runs, in columns: what a page asks for each second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.model.api_field import api_field
from controller.model.views import FlowSummaryView

NodeState = Literal["up", "away", "down"]
"""away: a switch whose connection ended a moment ago, and which is assumed to forward still."""


@dataclass(frozen=True, kw_only=True)
class LiveLinksView:
    """What changes of links: a value for each direction, in the order of `GET /v1/links`."""

    up: tuple[bool, ...]
    enabled: tuple[bool, ...]
    capacity_bps: tuple[float, ...]
    allocated_bps: tuple[float, ...] = api_field("Wire rate of all flows.")
    measured_bps: tuple[float | None, ...] = api_field("Wire rate counted; null where none is.")
    unrequested_bps: tuple[float | None, ...] = api_field("Of it, what belongs to no flow.")


@dataclass(frozen=True, kw_only=True)
class LiveView:
    """Links, nodes and flows at one moment."""

    links: LiveLinksView
    nodes: tuple[NodeState, ...] = api_field("In the order of the nodes of `GET /v1/topology`.")
    flows: tuple[FlowSummaryView, ...]
