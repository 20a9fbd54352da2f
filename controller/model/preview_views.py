"""What would happen if: the answer to a `PreviewRequest`, with the texts that REST documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.model.api_field import api_field


@dataclass(frozen=True, kw_only=True)
class PreviewPathView:
    """A path that a flow would have."""

    path: tuple[str, ...] = api_field("Host, switches, host.")
    rate_bps: float = api_field("Goodput, bit/s.")
    delay_s: float = api_field("One-way propagation delay.")


@dataclass(frozen=True, kw_only=True)
class RefusalView:
    """Why a flow would be refused."""

    code: str
    field: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class AddedFlowView:
    """What a request would be given."""

    source: str
    destination: str
    granted: bool
    requested_bps: float = api_field("Goodput asked for, bit/s.")
    rate_bps: float = api_field("Goodput that it would get; 0 where it would be refused.")
    paths: tuple[PreviewPathView, ...]
    refusal: RefusalView | None = api_field("Null where it would be granted.")


@dataclass(frozen=True, kw_only=True)
class MovedFlowView:
    """A running flow that would not stay as it is."""

    flow_id: str
    source: str
    destination: str
    outcome: Literal["moved", "rate_changed", "lost"] = api_field(
        "moved: it would have other paths. lost: no path could carry it."
    )
    requested_bps: float
    rate_before_bps: float
    rate_after_bps: float
    paths_before: tuple[PreviewPathView, ...]
    paths_after: tuple[PreviewPathView, ...]


@dataclass(frozen=True, kw_only=True)
class PreviewLinkView:
    """One direction of a link, before and after."""

    link: str = api_field("tail->head", examples=["S0->S4"])
    name: str
    capacity_bps: float
    up: bool = api_field("Afterwards.")
    allocated_before_bps: float
    allocated_after_bps: float
    utilisation_before: float
    utilisation_after: float


@dataclass(frozen=True, kw_only=True)
class PreviewSummaryView:
    """The whole in a few numbers."""

    flows: int = api_field("Running flows, without those that would be added.")
    admitted: int = api_field("Of the flows to be added.")
    refused: int = api_field("Of the flows to be added.")
    moved: int
    lost: int
    rate_changed: int
    rate_before_bps: float = api_field("Goodput of all flows.")
    rate_after_bps: float
    max_utilisation_before: float
    max_utilisation_after: float


@dataclass(frozen=True, kw_only=True)
class PreviewView:
    """What would happen; nothing of it has."""

    summary: PreviewSummaryView
    added: tuple[AddedFlowView, ...] = api_field("In the order of the request.")
    flows: tuple[MovedFlowView, ...] = api_field("Running flows that would not stay as they are.")
    links: tuple[PreviewLinkView, ...]
