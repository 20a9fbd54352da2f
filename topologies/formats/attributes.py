"""Rates, delays and places from the attributes that GraphML, GML and node-link JSON give nodes and edges.

| value | attribute (upper and lower case alike), first to last | unit of a bare number |
|---|---|---|
| rate | `rate_bps`, `LinkSpeedRaw` | bit/s |
| | `capacity`, `bandwidth`, `bw`, `rate` | bit/s, or as the caller says |
| | `LinkSpeed` with `LinkSpeedUnits` (Topology Zoo) | as they say |
| delay | `delay_us`, `delay_ms`, `delay_s`, the same with `latency` | as the name says |
| | `delay`, `latency` | none: refused unless the caller says |
| | `dist` of TopoHub's files, the length along the great circle | km, at 2/3 of the speed of light |
| place | `Longitude` and `Latitude`, `lon` and `lat`; `x` and `y`; `pos` (a pair) | |

Two rates, or two delays, that differ are refused: the file does not say which one holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from topologies.errors import InvalidTopology
from topologies.formats.raw import RawEdge, RawNetwork, RawNode, ReadOptions, Where
from topologies.units import UnitError, parse_rate_bps, parse_time_us

RATES_IN_BPS = ("rate_bps", "linkspeedraw")
RATES = ("capacity", "bandwidth", "bw", "rate")
ZOO_RATE = ("linkspeed", "linkspeedunits")
DELAYS_US = {
    f"{name}_{unit}": unit_us
    for name in ("delay", "latency")
    for unit, unit_us in (("us", 1.0), ("ms", 1e3), ("s", 1e6))
}
DELAYS = ("delay", "latency")
LENGTHS_KM = ("dist",)
LIGHT_IN_FIBRE_M_PER_S = 299_792_458 * 2 / 3
LONGITUDES = ("longitude", "lon")
LATITUDES = ("latitude", "lat")
EDGE_ATTRIBUTES = {*RATES_IN_BPS, *RATES, *ZOO_RATE, *DELAYS_US, *DELAYS, "source", "target", "key", "id"}
NODE_ATTRIBUTES = {"label", "name", "id", "x", "y", "pos", *LONGITUDES, *LATITUDES}
MAX_NAMED = 6
_TRUE, _FALSE = ("1", "True"), ("0", "False")
_PLANNED = "planned"
_BARE = re.compile(r"\s*[\d.]+([eE][+-]?\d+)?\s*")


def network_of(
    graph: Any, file: str, options: ReadOptions, where_edge: Any, where_node: Any, notes: tuple[str, ...] = ()
) -> RawNetwork:
    """Return a networkx graph as a network.

    Args:
        graph: the graph, its attributes as the file has them.
        file: the file, for errors.
        options: what the file does not say.
        where_edge: takes the two ends of an edge and returns its `Where`.
        where_node: takes a node's key and returns its `Where`.
        notes: what there is to say already.
    """
    nodes = [_node(str(key), data, file, where_node(key)) for key, data in graph.nodes(data=True)]
    both_ways = not graph.is_directed()
    lengths = LENGTHS_KM if _is_of_topohub(graph) else ()
    edges = []
    has_bare_rate = False
    for tail, head, data in graph.edges(data=True):
        where = where_edge(tail, head)
        values = _lowered(data)
        if options.ignore_planned and _is_planned(values):
            continue
        has_bare_rate |= any(_is_bare(values.get(name)) for name in RATES)
        edges.append(
            RawEdge(
                str(tail),
                str(head),
                _rate_bps(values, file, where, options),
                _delay_us(values, file, where, options, lengths),
                both_ways,
                where,
            )
        )
    said = list(notes)
    if has_bare_rate and options.rate_unit_bps is None:
        said.append("rates without a unit are read as bit/s (--rate-unit says otherwise)")
    if lengths:
        said.append("delays are those of the links' lengths (dist, in km, as TopoHub has it)")
    said += _kept_all_the_same(graph, options)
    said += _passed_over(graph, {*EDGE_ATTRIBUTES, *lengths})
    title = str(graph.graph.get("Network") or graph.graph.get("label") or graph.graph.get("name") or "")
    return RawNetwork(title.strip(), nodes, edges, tuple(said), options.rate_unit_bps)


def _is_bare(value: object) -> bool:
    """Return whether a value is a number without a unit; files without types have it as a text."""
    return isinstance(value, int | float) or (isinstance(value, str) and _BARE.fullmatch(value) is not None)


def _lowered(data: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).lower(): value for name, value in data.items() if value is not None}


def _node(key: str, data: Mapping[str, Any], file: str, where: Where) -> RawNode:
    values = _lowered(data)
    label = str(values.get("label") or values.get("name") or "").strip()
    longitude = _first_number(values, LONGITUDES, file, where)
    latitude = _first_number(values, LATITUDES, file, where)
    if longitude is not None and latitude is not None:
        return RawNode(key, label, longitude, latitude, is_geographic=True)
    x, y = (_first_number(values, (name,), file, where) for name in ("x", "y"))
    position = values.get("pos")
    if isinstance(position, list | tuple) and len(position) == 2 and x is None and y is None:
        x, y = (_number(value, "pos", file, where) for value in position)
    return RawNode(key, label, x, y)


def _first_number(values: Mapping[str, Any], names: tuple[str, ...], file: str, where: Where) -> float | None:
    for name in names:
        if name in values:
            return _number(values[name], name, file, where)
    return None


def _number(value: object, name: str, file: str, where: Where) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidTopology(f"{where()}: {name}", f"{value!r} is not a number", file) from None


def _rate_bps(values: Mapping[str, Any], file: str, where: Where, options: ReadOptions) -> float | None:
    units = dict.fromkeys(RATES_IN_BPS, 1.0) | dict.fromkeys(RATES, options.rate_unit_bps or 1.0)
    given = {name: values[name] for name in units if name in values}
    read = {}
    name = ""
    try:
        for name, value in given.items():
            read[name] = parse_rate_bps(value, units[name])
    except UnitError as error:
        raise InvalidTopology(f"{where()}: {name}", str(error), file) from None
    if not read and ZOO_RATE[0] in values:
        text = f"{values[ZOO_RATE[0]]} {values.get(ZOO_RATE[1], '')}"
        try:
            read[ZOO_RATE[0]] = parse_rate_bps(text)
        except UnitError:
            return None  # the Zoo has speeds as "<2.5", which say nothing certain
    return _agreed(read, "bit/s", file, where)


def _is_of_topohub(graph: Any) -> bool:
    stats = graph.graph.get("stats")
    return isinstance(stats, Mapping) and "avg_link_len" in stats


def _delay_us(
    values: Mapping[str, Any], file: str, where: Where, options: ReadOptions, lengths: tuple[str, ...]
) -> float | None:
    units: dict[str, float | None] = {**DELAYS_US, **dict.fromkeys(DELAYS, options.delay_unit_us)}
    read = {}
    name = ""
    try:
        for name, unit_us in units.items():
            if name in values:
                read[name] = parse_time_us(values[name], unit_us)
    except UnitError as error:
        raise InvalidTopology(f"{where()}: {name}", str(error), file) from None
    length_km = None if read else _first_number(values, lengths, file, where)
    if length_km is not None:
        return length_km * 1e3 / LIGHT_IN_FIBRE_M_PER_S * 1e6
    return _agreed(read, "us", file, where)


def _agreed(read: Mapping[str, float], unit: str, file: str, where: Where) -> float | None:
    """Return the value on which all attributes agree; None if there is none."""
    if len(set(read.values())) > 1:
        both = " and ".join(f"{name} is {value:g} {unit}" for name, value in read.items())
        raise InvalidTopology(where(), f"{both}: leave the one that holds and remove the other", file)
    return next(iter(read.values()), None)


def _is_planned(values: Mapping[str, Any]) -> bool:
    return any(_PLANNED in str(value).lower() for value in values.values())


def _kept_all_the_same(graph: Any, options: ReadOptions) -> Iterator[str]:
    """Yield what of the Topology Zoo is no switch or no link of today, and is read as one."""
    nodes = [_lowered(data) for _, data in graph.nodes(data=True)]
    edges = [_lowered(data) for *_, data in graph.edges(data=True)]
    counted = (
        (
            sum(str(node.get("hyperedge", 0)) in _TRUE for node in nodes),
            "nodes stand for a shared medium (hyperedge): flows begin and end there as at any other",
        ),
        (
            sum(str(node.get("internal", 1)) in _FALSE for node in nodes),
            "nodes are of other networks (Internal 0): flows begin and end there as at any other",
        ),
        (
            sum(map(_is_planned, edges)),
            "planned links are left out"
            if options.ignore_planned
            else "links are planned ones, and carry traffic as any other (--ignore-planned leaves them out)",
        ),
    )
    yield from (f"{count} {what}" for count, what in counted if count)


def _passed_over(graph: Any, known_of_edges: set[str]) -> Iterator[str]:
    """Yield what attributes were not read."""
    of_edges = {str(name) for *_, data in graph.edges(data=True) for name in data}
    of_nodes = {str(name) for _, data in graph.nodes(data=True) for name in data}
    for what, names, known in (("edges", of_edges, known_of_edges), ("nodes", of_nodes, NODE_ATTRIBUTES)):
        left = sorted(name for name in names if name.lower() not in known)
        if left:
            more = f" and {len(left) - MAX_NAMED} more" if len(left) > MAX_NAMED else ""
            yield f"attributes of {what} that are not read: {', '.join(left[:MAX_NAMED])}{more}"
