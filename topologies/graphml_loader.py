"""Networks in GraphML, as The Internet Topology Zoo has them and networkx writes them.

Every node becomes a switch with, by default, one host. What a file does not say is assumed:

| value | from the file | else |
|---|---|---|
| rate | `rate_bps`, `LinkSpeedRaw` (bit/s) or `capacity` of the edge | 1 Gbit/s |
| delay | `delay_us` of the edge, else along the great circle, at 2/3 of the speed of light | 1 ms |
| place on drawings | `Longitude` and `Latitude`, or `x` and `y` of the node | none |

Parallel edges become one link with the sum of their rates and the smallest delay; self loops are left out.
The network's description says how many of either there were. Hosts hang on links of 10 Gbit/s and 10 us.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import ParseError

import networkx as nx

from topologies.check import check_network
from topologies.errors import InvalidTopology
from topologies.model import Link, Network, Node
from topologies.validation import validate

DEFAULT_RATE_BPS = 1e9
DEFAULT_DELAY_US = 1000.0
HOST_RATE_BPS = 10e9
HOST_DELAY_US = 10.0
EARTH_RADIUS_M = 6_371_008.8
"""Mean radius of the WGS 84 ellipsoid."""
LIGHT_IN_FIBRE_M_PER_S = 299_792_458 * 2 / 3
RATE_KEYS = ("rate_bps", "LinkSpeedRaw", "capacity")
HOST_OFFSET = 0.02
"""Where a host is drawn above its switch, as a share of the drawing's height."""


def load_graphml(
    path: Path,
    hosts: Literal["each", "none"] = "each",
    *,
    default_rate_bps: float = DEFAULT_RATE_BPS,
) -> Network:
    """Return the network in a GraphML file.

    Args:
        path: the file.
        hosts: `each` gives every switch a host, `none` leaves the switches alone.
        default_rate_bps: of the links that have no rate in the file.

    Raises:
        InvalidTopology: the file cannot be read, is not GraphML, or is not one connected network.
    """
    file = str(path)
    graph = _read(path)
    names = _switch_names(graph)
    taken = {name.lower() for name in names.values()}
    links, merged, loops = _links(graph, names, file, default_rate_bps)
    nodes = _switches(graph, names, file)
    if hosts == "each":
        attached = _hosts(nodes, taken)
        nodes = [node for node, _ in attached] + nodes
        links = [_host_link(node.name, switch) for node, switch in attached] + links
    title = str(graph.graph.get("Network") or graph.graph.get("label") or path.stem).strip()
    notes = [
        f"{count} {what}"
        for count, what in ((merged, "parallel edges merged"), (loops, "self loops left out"))
        if count
    ]
    data = {
        "name": _safe(path.stem, "net")[:32],
        "description": "; ".join([title, *notes]),
        "nodes": nodes,
        "links": links,
    }
    network = validate(Network, data, file=file)
    check_network(network, file, need_hosts=hosts == "each")
    return network


def _read(path: Path) -> Any:
    try:
        graph = nx.read_graphml(path)
    except OSError as failure:
        raise InvalidTopology("", f"cannot be read: {failure.strerror}", str(path)) from None
    except (ParseError, nx.NetworkXError, ValueError, KeyError) as failure:
        raise InvalidTopology("", f"is not GraphML: {failure}", str(path)) from None
    if not len(graph):
        raise InvalidTopology("", "has no nodes", str(path))
    return graph


def _switch_names(graph: Any) -> dict[str, str]:
    """Return a name for every node: its label made safe, with a number where two labels are alike."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for key, data in graph.nodes(data=True):
        base = _safe(str(data.get("label") or data.get("name") or key), "n")[:24]
        name, number = base, 2
        while name.lower() in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name.lower())
        names[key] = name
    return names


def _safe(text: str, prefix: str) -> str:
    """Return a text as a name: ASCII letters, digits and underscores, a letter first."""
    safe = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return safe if safe[:1].isalpha() else f"{prefix}{safe}"


def _switches(graph: Any, names: Mapping[str, str], file: str) -> list[Node]:
    switches = []
    for key, data in graph.nodes(data=True):
        place = f"node {key!r}"
        x = _number(data, ("Longitude", "x"), place, file)
        y = _number(data, ("Latitude", "y"), place, file)
        switches.append(
            validate(Node, {"name": names[key], "kind": "switch", "x": x, "y": y}, file=file, prefix=place)
        )
    return switches


@dataclass
class _Edge:
    rate_bps: float
    delay_us: float


def _links(
    graph: Any, names: Mapping[str, str], file: str, default_rate_bps: float
) -> tuple[list[Link], int, int]:
    """Return the links, the number of edges merged into others, and that of self loops."""
    edges: dict[tuple[str, str], _Edge] = {}
    opposite: set[tuple[str, str]] = set()
    merged = loops = 0
    for tail, head, data in graph.edges(data=True):
        if tail == head:
            loops += 1
            continue
        edge = _edge(graph, tail, head, data, file, default_rate_bps)
        pair = (tail, head)
        if (head, tail) in edges:
            pair = (head, tail)
            if graph.is_directed() and pair not in opposite:
                opposite.add(pair)  # the other direction of a link that is already there
                continue
        if pair in edges:
            merged += 1
            edges[pair].rate_bps += edge.rate_bps
            edges[pair].delay_us = min(edges[pair].delay_us, edge.delay_us)
        else:
            edges[pair] = edge
    links = [
        validate(
            Link,
            {"ends": (names[a], names[b]), "rate_bps": edge.rate_bps, "delay_us": edge.delay_us},
            file=file,
            prefix=f"edge {a!r}-{b!r}",
        )
        for (a, b), edge in edges.items()
    ]
    return links, merged, loops


def _edge(
    graph: Any, tail: str, head: str, data: Mapping[str, Any], file: str, default_rate_bps: float
) -> _Edge:
    place = f"edge {tail!r}-{head!r}"
    rate = _number(data, RATE_KEYS, place, file)
    delay = _number(data, ("delay_us",), place, file)
    if delay is None:
        delay = _distance_delay_us(graph.nodes[tail], graph.nodes[head])
    return _Edge(default_rate_bps if rate is None else rate, DEFAULT_DELAY_US if delay is None else delay)


def _distance_delay_us(a: Mapping[str, Any], b: Mapping[str, Any]) -> float | None:
    """Return the delay along the great circle (haversine formula) in us; None without coordinates."""
    try:
        lat_a, lon_a, lat_b, lon_b = (
            math.radians(float(n[k])) for n in (a, b) for k in ("Latitude", "Longitude")
        )
    except (KeyError, ValueError):
        return None
    h = (
        math.sin((lat_b - lat_a) / 2) ** 2
        + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    )
    distance_m = 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, h)))
    return round(distance_m / LIGHT_IN_FIBRE_M_PER_S * 1e6, 3)


def _number(data: Mapping[str, Any], keys: tuple[str, ...], place: str, file: str) -> float | None:
    for key in keys:
        if key in data:
            try:
                return float(data[key])
            except ValueError:
                raise InvalidTopology(f"{place}: {key}", f"{data[key]!r} is not a number", file) from None
    return None


def _hosts(switches: list[Node], taken: set[str]) -> list[tuple[Node, str]]:
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
