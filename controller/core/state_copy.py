"""A copy of network and flows as plain data; `controller.flows.state_copy` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.core.settings import Settings
from controller.network.live_network import LiveStatus
from topologies.model import Network

__all__ = ["StateCopy"]


@dataclass(frozen=True)
class StateCopy:
    """Everything that routing depends on, as it was at one moment; nothing of it changes any more.

    `flows` are pairs of an id and a record (`controller.flows.record`); `yielded_bps` is what is left of
    arcs, by their names, to traffic that nobody asked for.
    """

    network: Network
    settings: Settings
    status: LiveStatus
    flows: tuple[tuple[str, Mapping[str, Any]], ...]
    yielded_bps: Mapping[str, float]
