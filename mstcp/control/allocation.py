"""What is asked of a controller, and what it gives. Needs no optional package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mstcp.streams import StreamSpec


@dataclass(frozen=True)
class RequestedPath:
    """A path to ask for, instead of letting the controller compute it.

    Attributes:
        nodes: Names of host, switches and host, in order.
        rate_bps: Goodput on it in bit/s.
    """

    nodes: tuple[str, ...]
    rate_bps: float


@dataclass(frozen=True)
class Allocation:
    """The controller's allocation for a flow (`get_extra_info("allocation")`).

    Attributes:
        flow_id: The flow's id at the controller.
        requested_bps: Goodput requested, in bit/s.
        rate_bps: Goodput granted, the sum over the streams, in bit/s.
        streams: The streams to open.
        lease_s: Seconds after which the flow ends unless it is renewed.
    """

    flow_id: str
    requested_bps: float
    rate_bps: float
    streams: tuple[StreamSpec, ...]
    lease_s: float


@dataclass(frozen=True)
class AllocationChanged:
    """The event for `on_allocation_changed`. The rates of a running connection have changed, or ended.

    With `may_grow` it may have other streams too: new ones are opened, those that are missing are closed.

    Attributes:
        before: What the connection had until now.
        after: What it has from now on; None: the controller has ended the flow, and the streams go on at
            their last rates, over the network's default routes.
        reason: Why the flow was ended; empty if it goes on.
    """

    before: Allocation
    after: Allocation | None
    reason: str = ""


OnAllocationChanged = Callable[[AllocationChanged], None]
