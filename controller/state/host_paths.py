"""Paths of least delay between hosts, over the links that are up."""

from __future__ import annotations

from controller.model.journal import Journaled
from controller.state.live_network import LiveNetwork, arc_name
from topologies.model import Arc


class HostPaths(Journaled):
    """Finds them, and remembers them until other links are up or delays have changed."""

    def __init__(self, live: LiveNetwork) -> None:
        self._live = live
        self._found: dict[tuple[str, str], tuple[tuple[str, ...], float] | None] = {}
        self._version = -1  # of the network

    def least_delay(self, source: str, destination: str) -> tuple[str, ...] | None:
        """Return the path of least delay between two hosts; None without one."""
        found = self.with_delay(source, destination)
        return None if found is None else found[0]

    def with_delay(self, source: str, destination: str) -> tuple[tuple[str, ...], float] | None:
        """Return that path with its delay in seconds."""
        if self._version != self._live.version:
            self._found, self._version = {}, self._live.version
        pair = source, destination
        if pair not in self._found:
            self._found[pair] = self._find(source, destination)
        return self._found[pair]

    def _find(self, source: str, destination: str) -> tuple[tuple[str, ...], float] | None:
        live = self._live
        paths = [
            (live.delay_s(path), len(path), path)
            for first in live.arcs_from(source)
            for last in live.arcs_from(destination)
            if (path := self._path_between(first, last)) is not None
        ]
        delay_s, _, path = min(paths, default=(0.0, 0, None))
        return None if path is None else (path, delay_s)

    def _path_between(self, first: Arc, last: Arc) -> tuple[str, ...] | None:
        """Return the path from a host's link to the link of another (given from its host)."""
        live, ends = self._live, ((first.tail, first.head), (last.head, last.tail))
        if not (live.is_whole or all(live.arc_is_up(arc_name(*end)) for end in ends)):
            return None
        if live.is_host(first.head):
            return (first.tail, first.head) if first.head == last.tail else None
        inner = None if live.is_host(last.head) else live.least_delay.path(first.head, last.head)
        return None if inner is None else (first.tail, *inner, last.tail)
