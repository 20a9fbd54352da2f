"""Flows of an earlier topology file whose paths the file has no more: they get one of least delay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controller.state.least_delay import path_over
from controller.state.live_network import LiveNetwork, arc_name, arcs_of
from controller.state.state import State
from topologies.model import Arc


def on_paths_of_file(record: Mapping[str, Any], state: State) -> Mapping[str, Any] | None:
    """Return the record of a flow with paths that the file has, the same object where they are all there.

    A stream whose path is gone has the path of least delay, and rate 0 until it is planned. None where there
    is no path, or where the paths were given by hand.
    """
    live, split = state.live, record["split"]
    gone = [_is_gone(live, stream[1]) for stream in record["streams"]]
    acks_are_gone = split is not None and _is_gone(live, split[3])
    if not any(gone) and not acks_are_gone:
        return record
    path = _least_delay_path(state, record["source"], record["destination"])
    if path is None or record["given_bps"] is not None:
        return None
    generation = record["generation"] + 1
    streams = [
        [stream[0], list(path), 0.0, live.delay_s(path), generation, *stream[5:]] if is_gone else stream
        for stream, is_gone in zip(record["streams"], gone, strict=True)
    ]
    if acks_are_gone:
        split = [*split[:3], list(path[::-1])]
    return {**record, "streams": streams, "generation": generation, "split": split}


def _is_gone(live: LiveNetwork, path: Sequence[str]) -> bool:
    return any(arc not in live.arcs for arc in arcs_of(tuple(path)))


def _least_delay_path(state: State, source: str, destination: str) -> tuple[str, ...] | None:
    """Return a path over links that are up or, where there is none, over those of the file."""
    live = state.live
    if not live.is_host(source) or not live.is_host(destination):
        return None
    return state.paths.least_delay(source, destination) or _path_in_file(live, source, destination)


def _path_in_file(live: LiveNetwork, source: str, destination: str) -> tuple[str, ...] | None:
    """Return the path of least delay over all links that may be used."""

    def usable(node: str) -> Iterator[Arc]:
        for arc in () if live.is_host(node) and node != source else live.arcs_from(node):
            if live.is_enabled(arc.link) and arc_name(arc.head, arc.tail) in live.arcs:
                yield arc

    return path_over(source, destination, usable)
