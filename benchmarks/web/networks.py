"""A network of Kdl's size, with hosts at some of its switches."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import topologies
from topologies.model import Network

KDL_SWITCHES = 754
KDL_LINKS = 895
"""Of the Topology Zoo's Kdl."""

_RATE_BPS = 1e9


def network_of(spec: str | None, hosts: int, seed: int, scale: float = 1.0) -> Network:
    """Return a network with this many of its hosts; without `spec`, one of Kdl's size times `scale`.

    Default routes lead from each switch to each host: with one at each of 754 switches, they would be most of
    what is measured.
    """
    network = of_kdl_size(seed, scale) if spec is None else topologies.load(spec)
    kept = set(random.Random(seed).sample(sorted(network.hosts), min(hosts, len(network.hosts))))
    gone = set(network.hosts) - kept
    document = network.model_dump(mode="json")
    document["nodes"] = [node for node in document["nodes"] if node["name"] not in gone]
    document["links"] = [link for link in document["links"] if not gone & set(link["ends"])]
    return Network.model_validate(document)


def of_kdl_size(seed: int, scale: float = 1.0) -> Network:
    """Return a sparse network of near neighbours, with a host at each switch."""
    chooser = random.Random(seed)
    places = [(chooser.random() * 14, chooser.random() * 10) for _ in range(round(scale * KDL_SWITCHES))]
    names = [f"S{number}" for number in range(len(places))]
    switches = [
        {"name": name, "kind": "switch", "x": x, "y": y} for name, (x, y) in zip(names, places, strict=True)
    ]
    hosts = [
        {"name": f"H{number}", "kind": "host", "x": x + 0.08, "y": y + 0.1}
        for number, (x, y) in enumerate(places)
    ]
    trunks = [
        _link(names[a], names[b], math.dist(places[a], places[b]))
        for a, b in _edges(places, round(scale * KDL_LINKS))
    ]
    access = [_link(f"H{number}", name, 0.01) for number, name in enumerate(names)]
    return Network.model_validate(
        {"name": "kdl_size", "description": "", "nodes": switches + hosts, "links": trunks + access}
    )


def _link(a: str, b: str, distance: float) -> dict[str, object]:
    return {"ends": [a, b], "rate_bps": _RATE_BPS, "delay_us": 10 + 400 * distance}


def _edges(places: list[tuple[float, float]], count: int) -> Iterator[tuple[int, int]]:
    """Yield the edges of a spanning tree of near neighbours, then the shortest others."""
    joined: set[tuple[int, int]] = set()
    for node in range(1, len(places)):
        nearest = min(range(node), key=lambda other: math.dist(places[node], places[other]))
        joined.add((nearest, node))
    pairs = ((a, b) for a in range(len(places)) for b in range(a + 1, len(places)))
    for pair in sorted(pairs, key=lambda pair: math.dist(places[pair[0]], places[pair[1]])):
        if len(joined) == count:
            break
        joined.add(pair)
    yield from sorted(joined)
