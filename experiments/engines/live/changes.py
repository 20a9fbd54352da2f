"""What becomes of links during a run, and of the flows' paths after it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from experiments.engines.live.agent import Agent
from experiments.model.dynamics import NetworkChange
from experiments.model.results import FlowResult, LinkChange, PathAllocation, PathChange
from switch.errors import SwitchError
from topologies.errors import TopologyError
from topologies.mininet_builder import Emulation
from topologies.mininet_builder import LinkChange as Change

Paths = Mapping[str, list[PathAllocation]]


class Changes:
    """Notes the changes of a run's links, those of the scenario and those that an extension makes.

    Controller and switches are asked for paths before the first change and from then on; of a run in which no
    link is changed, nothing.
    """

    def __init__(self, emulation: Emulation, agent: Agent) -> None:
        self._emulation = emulation
        self._agent = agent
        self._is_connected = False
        self._links: list[tuple[int, Change]] = []
        self._first: Paths = {}
        self._latest: Paths = {}
        self._paths: list[tuple[int, str, list[PathAllocation]]] = []
        emulation.on_link_change = self._note

    def connected(self) -> None:
        """Note that all flows are connected: from now on they have paths."""
        self._is_connected = True
        if self._links:
            self._first = self._latest = self._paths_now()

    def make(self, due: Sequence[NetworkChange]) -> None:
        """Make changes that the scenario has."""
        for change in due:
            self._emulation.set_link(change.link, up=change.up, silent=change.silent, **change.settings)

    def sample(self, now_ns: int) -> None:
        """Look which flows have other paths than at the last sample."""
        if not self._links:
            return
        now = self._paths_now()
        changed = [name for name, paths in now.items() if paths != self._latest.get(name)]
        self._paths += [(now_ns, name, now[name]) for name in changed]
        self._latest = {**self._latest, **now}

    def problems(self) -> list[str]:
        """Return a sentence where a link is not what it was made or changed to."""
        try:
            self._emulation.check_links()
        except TopologyError as error:
            return [f"a link was changed past `Emulation.set_link`, which records it: {error}"]
        return []

    def links(self, start_ns: int) -> list[LinkChange]:
        """Return the changes of links, with times from the start of the measurement."""
        return [
            LinkChange(
                time_s=_seconds(at_ns, start_ns),
                link=change.link,
                up=change.up,
                silent=change.silent,
                settings=dict(change.settings),
            )
            for at_ns, change in self._links
        ]

    def paths(self, start_ns: int) -> list[PathChange]:
        """Return the changes of paths, likewise."""
        return [
            PathChange(time_s=_seconds(at_ns, start_ns), flow=name, paths=paths)
            for at_ns, name, paths in self._paths
        ]

    def as_before(self, flow: FlowResult) -> FlowResult:
        """Return a flow's result with the paths that it had before the first change."""
        first = self._first.get(flow.flow)
        if first is None:
            return flow
        series = flow.series
        if len(series.streams) == len(first):
            pairs = zip(series.streams, first, strict=True)
            streams = [stream.model_copy(update={"path": entry.path}) for stream, entry in pairs]
            series = series.model_copy(update={"streams": streams})
        return flow.model_copy(update={"allocated": first, "series": series})

    def _note(self, change: Change) -> None:
        if self._is_connected and not self._links:
            self._first = self._latest = self._paths_now()
        self._links.append((time.monotonic_ns(), change))

    def _paths_now(self) -> Paths:
        try:
            return self._agent.paths_now()
        except (OSError, ValueError, SwitchError):  # a controller that an extension has stopped, perhaps
            return {}


def _seconds(at_ns: int, start_ns: int) -> float:
    return round((at_ns - start_ns) * 1e-9, 6)
