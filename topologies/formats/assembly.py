"""Networks of what was read from files: names, directions, parallel edges, and values that files do not give.

| value | in the file | else |
|---|---|---|
| rate | as the format has it | the caller's default, 1 Gbit/s |
| delay | as the format has it | along the great circle at 2/3 of the speed of light; 1 ms without places |

Every direction keeps its own rate and delay. Edges that lead from the same node to the same node with the
same delay become one, with the sum of their rates; those of different delays stay apart where a network is
routed over, and become one of the smallest delay where it is emulated or simulated. Self loops are left out.
What was assumed or left out is said in the notes. Hosts hang on links of 10 Gbit/s and 10 us.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from topologies.check import check_network, listed, unreached_switches
from topologies.errors import InvalidTopology
from topologies.formats.attributes import LIGHT_IN_FIBRE_M_PER_S
from topologies.formats.naming import safe_name
from topologies.formats.raw import RawEdge, RawNetwork, RawNode, ReadOptions, Where
from topologies.model import Link, Network, Node
from topologies.validation import validate

DEFAULT_RATE_BPS = 1e9
DEFAULT_DELAY_US = 1000.0
HOST_RATE_BPS = 10e9
HOST_DELAY_US = 10.0
EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the WGS 84 ellipsoid."""
HOST_OFFSET = 0.02
"""Where a host is drawn above its switch, as a share of the drawing's height."""


@dataclass
class _Arc:
    """One direction: the edges that lead from one node to another."""

    rate_bps: float
    delay_us: float
    where: Where


@dataclass
class _Counts:
    merged: int = 0
    parallel: int = 0
    loops: int = 0
    without_rate: int = 0
    by_distance: int = 0
    without_delay: int = 0


@dataclass(frozen=True)
class Assembled:
    """A network of a file.

    Attributes:
        network: The network.
        keys: The name in the network of each node's key in the file, in file order.
        labels: The names of the nodes of each label.
        notes: Sentences on what was assumed or left out.
    """

    network: Network
    keys: Mapping[str, str]
    labels: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


def assemble(
    raw: RawNetwork, path: Path, options: ReadOptions, *, with_hosts: bool, need_connected: bool
) -> Assembled:
    """Return the network of what was read.

    Args:
        raw: What was read.
        path: The file.
        options: What the caller knows.
        with_hosts: Give every switch a host.
        need_connected: Refuse a network of several parts, instead of noting it.

    Raises:
        InvalidTopology: It is no network that can be used.
    """
    file = str(path)
    if not raw.nodes:
        raise InvalidTopology("", "has no nodes", file)
    if options.largest_part:
        raw = largest_part(raw)
    if len(raw.nodes) > 1 and not raw.edges:
        raise InvalidTopology("", "has no edges: its nodes are not connected", file)
    keys = _names(raw.nodes)
    counts = _Counts()
    links = _links(_arcs(raw, options, counts, file, apart=not with_hosts), keys, file)
    counts.parallel = sum(link.parallel > 0 for link in links)
    nodes = [_switch(node, keys[node.key], file) for node in raw.nodes]
    if with_hosts:
        attached = _hosts(nodes)
        nodes = [node for node, _ in attached] + nodes
        links = [_host_link(node.name, switch) for node, switch in attached] + links
    kinds = "; ".join([raw.title or path.stem, *_left_out(counts)])
    data = {"name": safe_name(path.stem, "net")[:32], "description": kinds, "nodes": nodes, "links": links}
    network = validate(Network, data, file=file)
    check_network(network, file, need_hosts=with_hosts, need_connected=need_connected)
    labels: dict[str, tuple[str, ...]] = {}
    for node in raw.nodes:
        if node.label:
            labels[node.label] = (*labels.get(node.label, ()), keys[node.key])
    labels |= {alias: (keys[key],) for alias, key in raw.aliases.items() if key in keys}
    notes = (*raw.notes, *_left_out(counts), *_assumed(counts, options), *_parts(network))
    return Assembled(network, keys, labels, notes)


def _names(nodes: Iterable[RawNode]) -> dict[str, str]:
    """Return a name for every node: its label made safe, with a number where two labels are alike."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for node in nodes:
        base = safe_name(node.label or node.key, "n")[:24]
        if base == "n":  # of a script that is not transcribed nothing is left
            base = safe_name(node.key, "n")[:24]
        name, number = base, 2
        while name.lower() in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name.lower())
        names[node.key] = name
    return names


def largest_part(raw: RawNetwork) -> RawNetwork:
    """Return the largest connected part of what was read, the first of several such, and say what is left."""
    # networkx is slow to import, and only who asks for a part should wait for it.
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(node.key for node in raw.nodes)
    graph.add_edges_from((edge.tail, edge.head) for edge in raw.edges)
    parts = list(nx.connected_components(graph))
    largest = max(parts, key=len)
    if len(parts) == 1:
        return raw
    nodes = [node for node in raw.nodes if node.key in largest]
    edges = [edge for edge in raw.edges if edge.tail in largest]
    note = f"{len(raw.nodes) - len(nodes)} nodes in {len(parts) - 1} smaller parts are left out"
    return replace(raw, nodes=nodes, edges=edges, notes=(*raw.notes, note))


def _switch(node: RawNode, name: str, file: str) -> Node:
    data = {"name": name, "kind": "switch", "x": node.x, "y": node.y}
    return validate(Node, data, file=file, prefix=f"node {node.key!r}")


_Place: TypeAlias = tuple[str, str, int]
"""Tail, head, and which of the parallel edges between them."""


def _arcs(
    raw: RawNetwork, options: ReadOptions, counts: _Counts, file: str, *, apart: bool
) -> dict[_Place, _Arc]:
    """Return the directions in the order in which the file names them first."""
    places = {node.key: (node.x, node.y) for node in raw.nodes if node.is_geographic}
    default_bps = DEFAULT_RATE_BPS if options.default_rate_bps is None else options.default_rate_bps
    arcs: dict[_Place, _Arc] = {}
    for edge in raw.edges:
        if edge.tail == edge.head:
            counts.loops += 1
            continue
        rate_bps = default_bps if edge.rate_bps is None else edge.rate_bps
        counts.without_rate += edge.rate_bps is None
        delay_us = _delay_us(edge, places, counts)
        if not rate_bps > 0:
            reason = f"must be a number above 0, not {rate_bps:g}; leave an edge out that carries nothing"
            raise InvalidTopology(f"{edge.where()}.rate_bps", reason, file)
        ends = (edge.tail, edge.head)
        pairs = (ends, ends[::-1]) if edge.both_ways else (ends,)
        number = _number(arcs, pairs, delay_us) if apart else 0
        counts.merged += any((*pair, number) in arcs for pair in pairs)
        for pair in pairs:
            arc = arcs.setdefault((*pair, number), _Arc(0.0, delay_us, edge.where))
            arc.rate_bps += rate_bps
            arc.delay_us = min(arc.delay_us, delay_us)
    return arcs


def _number(arcs: Mapping[_Place, _Arc], pairs: Iterable[tuple[str, str]], delay_us: float) -> int:
    """Return which of the parallel edges one of this delay is: its equal's, else that of a free place."""
    free: int | None = None
    for number in itertools.count():
        own = [arcs.get((*pair, number)) for pair in pairs]
        back = [arcs.get((*pair[::-1], number)) for pair in pairs]
        if all(arc is not None and arc.delay_us == delay_us for arc in own):
            return number
        is_free = not any(own)
        if is_free and any(arc is not None and arc.delay_us == delay_us for arc in back):
            return number
        free = number if free is None and is_free else free
        if is_free and not any(back):
            return number if free is None else free
    raise AssertionError


def _delay_us(
    edge: RawEdge, places: Mapping[str, tuple[float | None, float | None]], counts: _Counts
) -> float:
    if edge.delay_us is not None:
        return edge.delay_us
    if edge.tail in places and edge.head in places:
        counts.by_distance += 1
        return _great_circle_us(*places[edge.tail], *places[edge.head])  # type: ignore[arg-type]
    counts.without_delay += 1
    return DEFAULT_DELAY_US


def _great_circle_us(lon_a: float, lat_a: float, lon_b: float, lat_b: float) -> float:
    """Return the delay along the great circle (haversine formula), from degrees."""
    lon_a, lat_a, lon_b, lat_b = map(math.radians, (lon_a, lat_a, lon_b, lat_b))
    h = (
        math.sin((lat_b - lat_a) / 2) ** 2
        + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    )
    distance_m = 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, h)))
    return round(distance_m / LIGHT_IN_FIBRE_M_PER_S * 1e6, 3)


def _links(arcs: Mapping[_Place, _Arc], keys: Mapping[str, str], file: str) -> list[Link]:
    """Return a link for each pair of nodes and delay, its two directions as the file has them."""
    links = []
    done: set[_Place] = set()
    for (tail, head, number), arc in arcs.items():
        if (head, tail, number) in done:
            continue
        done.add((tail, head, number))
        back = arcs.get((head, tail, number))
        data: dict[str, object] = {
            "ends": (keys[tail], keys[head]),
            "rate_bps": arc.rate_bps,
            "delay_us": arc.delay_us,
            "parallel": number,
        }
        if back is None:
            data["one_way"] = True
        else:
            data |= {"reverse_rate_bps": back.rate_bps} if back.rate_bps != arc.rate_bps else {}
            data |= {"reverse_delay_us": back.delay_us} if back.delay_us != arc.delay_us else {}
        links.append(_link(data, arc.where, file))
    return links


def _link(data: Mapping[str, object], where: Where, file: str) -> Link:
    try:
        return Link.model_validate(data)
    except ValidationError:  # where it stands in the file may take a search, so it is asked for only now
        return validate(Link, data, file=file, prefix=where())


def _hosts(switches: list[Node]) -> list[tuple[Node, str]]:
    taken = {switch.name.lower() for switch in switches}
    heights = [node.y for node in switches if node.y is not None]
    offset = HOST_OFFSET * ((max(heights) - min(heights)) or 1.0) if heights else 0.0
    hosts = []
    for switch in switches:
        name = f"h_{switch.name}"
        while name.lower() in taken:
            name = f"h{name}"
        taken.add(name.lower())
        y = None if switch.y is None else switch.y + offset
        hosts.append((Node(name=name, kind="host", x=switch.x, y=y), switch.name))
    return hosts


def _host_link(host: str, switch: str) -> Link:
    return Link(ends=(host, switch), rate_bps=HOST_RATE_BPS, delay_us=HOST_DELAY_US)


def _left_out(counts: _Counts) -> list[str]:
    every = (
        (counts.merged, "parallel edges merged"),
        (counts.parallel, "parallel edges of other delays kept apart"),
        (counts.loops, "self loops left out"),
    )
    return [f"{count} {what}" for count, what in every if count]


def _assumed(counts: _Counts, options: ReadOptions) -> Iterator[str]:
    if counts.without_rate:
        bps = DEFAULT_RATE_BPS if options.default_rate_bps is None else options.default_rate_bps
        yield f"{counts.without_rate} edges have no rate in the file: {_rate(bps)} each (--capacity)"
    elif options.default_rate_bps is not None:
        yield "--capacity is not used: every edge has a rate in the file"
    if counts.by_distance:
        yield f"{counts.by_distance} edges have the delay of their length: the file has none"
    if counts.without_delay:
        yield f"{counts.without_delay} edges have a delay of 1 ms: the file has none, nor places on earth"


def _rate(rate_bps: float) -> str:
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate_bps >= scale:
            return f"{rate_bps / scale:g} {prefix}bit/s"
    return f"{rate_bps:g} bit/s"


def _parts(network: Network) -> Iterator[str]:
    apart = unreached_switches(network)
    if apart:
        yield (
            f"the network has several parts: {listed(apart)} cannot be reached from {network.switches[0]}; "
            "demands between parts get nothing"
        )
