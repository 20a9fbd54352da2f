"""GML (M. Himsolt, "GML: A portable Graph File Format", 1997), as the Topology Zoo and networkx write it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from topologies.errors import InvalidTopology
from topologies.formats.attributes import network_of
from topologies.formats.raw import RawNetwork, ReadOptions, Where, line_of, text_of
from topologies.formats.sndlib import leads_both_ways

NAME = "GML"
SUFFIXES = (".gml",)
_PARTS = re.compile(
    r'"[^"]*"|#[^\n]*|\b(?P<graph>graph\s*\[)|(?<![\w.])(?P<whole>[+-]?\d+)(?P<power>[eE][+-]?\d+)\b'
)
"""What the next rules are about, and strings and comments, in which they do not hold."""
_SNDLIB = re.compile(r'^\s*Creator\s+"sndlib\b', re.IGNORECASE | re.MULTILINE)


def recognises(head: str) -> bool:
    """Return whether a file that begins so is GML."""
    return re.search(r"^\s*graph\s*\[", head, re.MULTILINE) is not None


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file; edges lead both ways unless it says `directed 1`.

    Raises:
        InvalidTopology: It is not GML, or says what has no meaning.
    """
    # networkx is slow to import, and only files that need it should wait for it.
    import networkx as nx

    text = text_of(content)
    try:
        graph = nx.parse_gml(_as_networkx_reads(text), label="id")
    except (nx.NetworkXError, ValueError, KeyError, TypeError) as failure:
        raise InvalidTopology("", f"is not GML: {failure}", str(path)) from None
    for *_, data in (*graph.nodes(data=True), *graph.edges(data=True)):
        data.update({name: value[0] for name, value in data.items() if _is_one_value(value)})
    raw = network_of(
        graph,
        str(path),
        options,
        lambda tail, head: _where(text, "edge", tail, head),
        lambda key: _where(text, "node", key),
    )
    of_sndlib = graph.is_directed() and _SNDLIB.search(text) is not None
    return _as_sndlib_means(raw, str(path), options) if of_sndlib else raw


def _as_sndlib_means(raw: RawNetwork, file: str, options: ReadOptions) -> RawNetwork:
    """Return the network with links both ways, unless each has its opposite.

    SNDlib writes `directed 1` over all of its networks.
    """
    both_ways = options.both_ways
    if both_ways is None:
        ends = [(edge.tail, edge.head) for edge in raw.edges]
        both_ways = leads_both_ways(ends, [edge.where for edge in raw.edges], file)
    if not both_ways:
        return raw
    edges = [replace(edge, both_ways=True) for edge in raw.edges]
    note = "links lead both ways: SNDlib writes each once, as directed (--links says otherwise)"
    return replace(raw, edges=edges, notes=(*raw.notes, note))


def _as_networkx_reads(text: str) -> str:
    """Return a text as networkx wants it.

    Files of the Topology Zoo have parallel edges without saying so, and igraph writes numbers as `1e+09`.
    """
    is_marked = re.search(r"^\s*multigraph\s+1", text, re.MULTILINE) is not None

    def written(part: re.Match[str]) -> str:
        nonlocal is_marked
        if part["whole"]:
            return f"{part['whole']}.0{part['power']}"
        if not part["graph"] or is_marked:
            return part[0]
        is_marked = True
        return f"{part[0]} multigraph 1 "

    return _PARTS.sub(written, text)


def _is_one_value(value: object) -> bool:
    """Return whether a key was given several times, with one value."""
    return isinstance(value, list) and all(own == value[0] for own in value)


def _where(text: str, kind: str, *keys: object) -> Where:
    names = "-".join(repr(str(key)) for key in keys)

    def where() -> str:
        wanted = [str(key) for key in keys]
        fields = ("id",) if kind == "node" else ("source", "target")
        for block in re.finditer(rf"\b{kind}\s*\[([^\[\]]*)", text):
            values = [re.search(rf'\b{field}\s+"?([^\s"]+)', block[1]) for field in fields]
            if [value[1] for value in values if value] in (wanted, wanted[::-1]):
                return f"{kind} {names} (line {line_of(text, block.start())})"
        return f"{kind} {names}"

    return where
