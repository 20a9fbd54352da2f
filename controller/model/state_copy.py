"""A copy of network and flows as plain data; `controller.decide.state_copies` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gomr import Engine

from controller.model.settings import Settings
from topologies.model import Arc, Network


@dataclass(frozen=True)
class LiveStatus:
    """Which switches are connected or away, which ports are up, and which arcs discovery has seen.

    `arcs` are as they are now; `disabled` are links that may not be used.
    """

    connected: frozenset[int]
    away: frozenset[int]
    live_ports: Mapping[int, frozenset[int]]
    seen: frozenset[str]
    arcs: tuple[tuple[str, Arc], ...]
    disabled: frozenset[str]


@dataclass(frozen=True)
class StateCopy:
    """An immutable copy of all that routing depends on.

    `flows` are pairs of an id and a record (`controller.state.flow_record`); `yielded_bps` is what is left of
    arcs, by their names, to traffic that nobody asked for; `engines` have the last optimum of each objective.
    """

    network: Network
    settings: Settings
    status: LiveStatus
    flows: tuple[tuple[str, Mapping[str, Any]], ...]
    yielded_bps: Mapping[str, float]
    engines: Mapping[str, Engine]
