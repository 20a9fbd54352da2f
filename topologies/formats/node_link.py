"""Node-link JSON, as networkx, Teal (harvard-cns/teal) and D3 write it.

The edges stand under `links` or `edges`, each with `source` and `target`; `directed` and `multigraph` say
what they are. Teal's networks are directed, with a `capacity` without a unit on each edge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from topologies.errors import InvalidTopology
from topologies.formats.attributes import network_of
from topologies.formats.raw import RawNetwork, ReadOptions, Where, text_of

NAME = "node-link JSON"
SUFFIXES: tuple[str, ...] = ()
EDGES = ("links", "edges")


def recognises(head: str) -> bool:
    """Return whether a file that begins so is JSON; its nodes may stand far behind the beginning."""
    return head.lstrip().startswith("{")


def is_node_link(data: object) -> bool:
    """Return whether parsed JSON is a network in this format."""
    if not isinstance(data, Mapping) or "nodes" not in data:
        return False
    if "directed" in data or "multigraph" in data:
        return True
    edges = next((data[name] for name in EDGES if name in data), None)
    return isinstance(edges, list) and bool(edges) and isinstance(edges[0], Mapping) and "source" in edges[0]


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file; edges lead both ways unless it says `"directed": true`.

    Raises:
        InvalidTopology: It is not in this format, or says what has no meaning.
    """
    # networkx is slow to import, and only files that need it should wait for it.
    import networkx as nx

    file = str(path)
    try:
        data = json.loads(text_of(content), object_pairs_hook=partial(_object, file))
    except ValueError as failure:
        raise InvalidTopology("", f"is not JSON: {failure}", file) from None
    under = _check(data, file)
    # As a multigraph nothing is lost where a file has parallel edges; indices of D3 are ids to networkx.
    graph = (nx.MultiDiGraph if data.get("directed") else nx.MultiGraph)()
    graph.graph.update(data.get("graph", {}))
    for index, node in enumerate(data["nodes"]):
        key = _key(node.get("id", index))
        if key in graph:
            raise InvalidTopology(f"nodes[{index}].id", f"there is already a node {key!r}", file)
        graph.add_node(key)
        graph.nodes[key].update({name: value for name, value in node.items() if name != "id"})
    for index, edge in enumerate(data[under]):
        ends = [_key(edge[name]) for name in ("source", "target")]
        for name, key in zip(("source", "target"), ends, strict=True):
            if key not in graph:
                raise InvalidTopology(f"{under}[{index}].{name}", f"there is no node {edge[name]!r}", file)
        number = graph.add_edge(*ends)
        own = {name: value for name, value in edge.items() if name not in ("source", "target", "key")}
        graph.edges[ends[0], ends[1], number].update(own)
    return network_of(
        graph,
        file,
        options,
        lambda tail, head: _where_edge(data[under], under, tail, head),
        lambda key: lambda: f"node {key!r}",
    )


def _object(file: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    for name, value in pairs if len(read) < len(pairs) else ():
        if value != read[name]:
            reason = f"is given twice, as {value!r} and {read[name]!r}: leave the one that holds"
            raise InvalidTopology(name, reason, file)
    return read


def _check(data: Any, file: str) -> str:
    """Check the shape; return the name under which the edges stand."""
    if not is_node_link(data) or not isinstance(data["nodes"], list):
        raise InvalidTopology(
            "", "is not node-link JSON: it needs nodes, and links with source and target", file
        )
    under = [name for name in EDGES if name in data]
    if len(under) != 1:
        raise InvalidTopology("", f"has to have either links or edges, it has {len(under)} of them", file)
    if not isinstance(data[under[0]], list):
        raise InvalidTopology(under[0], "has to be an array", file)
    _check_entries("nodes", data["nodes"], (), file)
    _check_entries(under[0], data[under[0]], ("source", "target"), file)
    for name, kind, told in (("directed", int, "true or false"), ("graph", Mapping, "an object")):
        if name in data and not isinstance(data[name], kind):
            raise InvalidTopology(name, f"has to be {told}", file)
    return under[0]


def _check_entries(place: str, entries: list[Any], needed: Sequence[str], file: str) -> None:
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            raise InvalidTopology(f"{place}[{index}]", "has to be an object", file)
        for name in needed:
            if name not in entry:
                raise InvalidTopology(f"{place}[{index}].{name}", "must be given", file)


def _key(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # JSON has one kind of numbers
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def _where_edge(edges: list[Any], under: str, tail: str, head: str) -> Where:
    def where() -> str:
        for index, edge in enumerate(edges):
            if {_key(edge["source"]), _key(edge["target"])} == {tail, head}:
                return f"{under}[{index}] ({tail!r}-{head!r})"
        return f"edge {tail!r}-{head!r}"

    return where
