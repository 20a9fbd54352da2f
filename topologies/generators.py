"""Networks made by rule: line, ring, fat tree and Waxman's random graph, each with hosts.

A generator is written `NAME:SIZE[:KEY=VALUE...]`, as `ring:6:rate_bps=10e6:delay_us=1000`. Every generator
takes `rate_bps` (10e6) and `delay_us` (1000) for the links between switches, `host_rate_bps` (100e6) and
`host_delay_us` (100) for those to hosts, and `queue_packets` (unlimited) for all.
"""

from __future__ import annotations

import inspect
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from topologies.check import check_network
from topologies.errors import GeneratorError
from topologies.model import Link, Network, Node
from topologies.validation import validate

GRAMMAR = "line:N, ring:N, fat-tree:K or waxman:N, then :KEY=VALUE as in ring:6:rate_bps=10e6:delay_us=1000"
MAX_SIZE = 1000
MAX_FAT_TREE = 24


@dataclass
class _Draft:
    """A network being put together; `links` holds the settings of links that `link` and `attach` use."""

    rate_bps: float
    delay_us: float
    host_rate_bps: float
    host_delay_us: float
    queue_packets: int | None
    nodes: list[Node] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def add(self, name: str, kind: str, x: float, y: float) -> None:
        self.nodes.append(validate(Node, {"name": name, "kind": kind, "x": x, "y": y}))

    def link(self, a: str, b: str, delay_us: float | None = None) -> None:
        delay = self.delay_us if delay_us is None else delay_us
        self._add_link(a, b, self.rate_bps, delay)

    def attach(self, host: str, switch: str) -> None:
        self._add_link(host, switch, self.host_rate_bps, self.host_delay_us)

    def _add_link(self, a: str, b: str, rate_bps: float, delay_us: float) -> None:
        data = {
            "ends": (a, b),
            "rate_bps": rate_bps,
            "delay_us": delay_us,
            "queue_packets": self.queue_packets,
        }
        self.links.append(validate(Link, data, prefix=f"links.{a}-{b}"))

    def finish(self, name: str, description: str) -> Network:
        hosts = [node for node in self.nodes if node.kind == "host"]
        switches = [node for node in self.nodes if node.kind == "switch"]
        data = {"name": name, "description": description, "nodes": [*hosts, *switches], "links": self.links}
        network = validate(Network, data)
        check_network(network)
        return network


def _draft(
    rate_bps: float = 10e6,
    delay_us: float = 1000,
    host_rate_bps: float = 100e6,
    host_delay_us: float = 100,
    queue_packets: int | None = None,
) -> _Draft:
    return _Draft(rate_bps, delay_us, host_rate_bps, host_delay_us, queue_packets)


def line(n: int, **link_settings: Any) -> Network:
    """Return `n` switches in a row, a host at each.

    Args:
        n: number of switches, at least 1.
        link_settings: see the module.
    """
    _require(1 <= n <= MAX_SIZE, f"a line has 1 to {MAX_SIZE} switches, not {n}")
    draft = _draft(**link_settings)
    for i in range(1, n + 1):
        draft.add(f"h{i}", "host", i, 1)
        draft.add(f"s{i}", "switch", i, 0)
        draft.attach(f"h{i}", f"s{i}")
    for i in range(1, n):
        draft.link(f"s{i}", f"s{i + 1}")
    return draft.finish(f"line{n}", f"{n} switches in a row, a host at each")


def ring(n: int, **link_settings: Any) -> Network:
    """Return `n` switches in a ring, a host at each.

    Args:
        n: number of switches, at least 3.
        link_settings: see the module.
    """
    _require(3 <= n <= MAX_SIZE, f"a ring has 3 to {MAX_SIZE} switches, not {n}")
    draft = _draft(**link_settings)
    for i in range(1, n + 1):
        angle = math.pi / 2 - 2 * math.pi * (i - 1) / n
        draft.add(f"h{i}", "host", 1.4 * math.cos(angle), 1.4 * math.sin(angle))
        draft.add(f"s{i}", "switch", math.cos(angle), math.sin(angle))
        draft.attach(f"h{i}", f"s{i}")
    for i in range(1, n + 1):
        draft.link(f"s{i}", f"s{i % n + 1}")
    return draft.finish(f"ring{n}", f"{n} switches in a ring, a host at each")


def fat_tree(k: int, **link_settings: Any) -> Network:
    """Return the fat tree of `k`-port switches (Al-Fares et al., SIGCOMM 2008): k pods, k^3/4 hosts.

    Args:
        k: ports of each switch, even.
        link_settings: see the module.
    """
    _require(
        2 <= k <= MAX_FAT_TREE and k % 2 == 0, f"a fat tree has an even K from 2 to {MAX_FAT_TREE}, not {k}"
    )
    draft = _draft(**link_settings)
    half = k // 2
    width = k * half * half
    for i, j in itertools.product(range(half), repeat=2):
        draft.add(f"c{i}_{j}", "switch", (i * half + j + 0.5) * width / half**2, 3)
    for pod, i in itertools.product(range(k), range(half)):
        x = (pod * half + i + 0.5) * half
        draft.add(f"a{pod}_{i}", "switch", x, 2)
        draft.add(f"e{pod}_{i}", "switch", x, 1)
        for j in range(half):
            draft.add(f"h{pod}_{i}_{j}", "host", (pod * half + i) * half + j + 0.5, 0)
            draft.attach(f"h{pod}_{i}_{j}", f"e{pod}_{i}")
    for pod, i, j in itertools.product(range(k), range(half), range(half)):
        draft.link(f"e{pod}_{i}", f"a{pod}_{j}")
        draft.link(f"a{pod}_{i}", f"c{i}_{j}")
    return draft.finish(f"fat_tree{k}", f"Fat tree of {k}-port switches")


def waxman(n: int, seed: int = 1, alpha: float = 0.4, beta: float = 0.4, **link_settings: Any) -> Network:
    """Return a random graph of `n` switches in the unit square, a host at each.

    Two switches at distance d are joined with probability beta exp(-d / (alpha L)), where L is the largest
    distance (Waxman, IEEE JSAC 6(9), 1988). Parts that are not connected are then joined where they are
    nearest. A link's delay is `delay_us` times its length, so `delay_us` is the delay along the side of the
    square.

    Args:
        n: number of switches, at least 1.
        seed: of the random numbers; the same seed gives the same network on every machine.
        alpha: how far links reach, above 0.
        beta: how dense they are, in (0, 1].
        link_settings: see the module.
    """
    _require(1 <= n <= MAX_SIZE, f"a Waxman graph has 1 to {MAX_SIZE} switches, not {n}")
    _require(alpha > 0, f"alpha must be above 0, not {alpha:g}")
    _require(0 < beta <= 1, f"beta must be in (0, 1], not {beta:g}")
    draft = _draft(**link_settings)
    rng = random.Random(seed)
    places = [(rng.random(), rng.random()) for _ in range(n)]
    distances = {(i, j): math.dist(places[i], places[j]) for i, j in itertools.combinations(range(n), 2)}
    longest = max(distances.values(), default=1.0)
    edges = [pair for pair, d in distances.items() if rng.random() < beta * math.exp(-d / (alpha * longest))]
    edges += _joining(n, edges, distances)
    for i, (x, y) in enumerate(places, start=1):
        draft.add(f"h{i}", "host", x, y + 0.04)
        draft.add(f"s{i}", "switch", x, y)
        draft.attach(f"h{i}", f"s{i}")
    for i, j in sorted(edges):
        draft.link(f"s{i + 1}", f"s{j + 1}", delay_us=round(draft.delay_us * distances[i, j], 3))
    return draft.finish(f"waxman{n}", f"Waxman graph of {n} switches, seed {seed}, a host at each")


def _joining(
    n: int, edges: list[tuple[int, int]], distances: dict[tuple[int, int], float]
) -> list[tuple[int, int]]:
    """Return the shortest edges that connect what `edges` leaves apart."""
    # networkx is slow to import, and only networks that need it should wait for it.
    import networkx as nx

    graph = nx.empty_graph(n)
    graph.add_edges_from(edges)
    if nx.is_connected(graph):
        return []
    return list(nx.k_edge_augmentation(graph, 1, [(*pair, distance) for pair, distance in distances.items()]))


GENERATORS: dict[str, Callable[..., Network]] = {
    "line": line,
    "ring": ring,
    "fat-tree": fat_tree,
    "waxman": waxman,
}


def generate(spec: str) -> Network:
    """Return the network of a generator specification, as `waxman:12:seed=3`.

    Raises:
        GeneratorError: the specification cannot be read; the text has the grammar.
        InvalidTopology: a link setting that the schema refuses, as a rate of 0.
    """
    name, *parts = spec.split(":")
    if name not in GENERATORS or not parts:
        raise GeneratorError(spec, f"write {GRAMMAR}")
    if not parts[0].isascii() or not parts[0].isdigit():
        raise GeneratorError(spec, f"the size {parts[0]!r} is not a whole number; write {GRAMMAR}")
    settings: dict[str, float | int] = {}
    types = _setting_types(GENERATORS[name])
    for part in parts[1:]:
        key, equals, text = part.partition("=")
        if not equals or key not in types:
            raise GeneratorError(
                spec, f"{part!r} is not KEY=VALUE with a key of {', '.join(types)}; write {GRAMMAR}"
            )
        if key in settings:
            raise GeneratorError(spec, f"{key} is given twice")
        settings[key] = _number(spec, key, text, types[key])
    try:
        return GENERATORS[name](int(parts[0]), **settings)
    except _Refused as refused:
        raise GeneratorError(spec, str(refused)) from None


class _Refused(ValueError):
    """A size or parameter that a generator does not serve."""


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise _Refused(reason)


def _setting_types(generator: Callable[..., Network]) -> dict[str, type]:
    own = [p for p in inspect.signature(generator).parameters.values() if p.default is not p.empty]
    parameters = [*own, *inspect.signature(_draft).parameters.values()]
    return {p.name: int if p.name in ("seed", "queue_packets") else float for p in parameters}


def _number(spec: str, key: str, text: str, kind: type) -> float | int:
    try:
        value: float | int = kind(text)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise GeneratorError(spec, f"{key}={text!r} is not {wanted}") from None
    if not math.isfinite(value):
        raise GeneratorError(spec, f"{key}={text!r} is not finite")
    return value
