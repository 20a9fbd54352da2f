"""Lists of edges: a line each, its two ends and perhaps its rate; and CAIDA's lists of autonomous systems.

    # comments
    Paris Lyon 10G
    Lyon Nice

    1|11537|0          CAIDA's as-rel: provider|customer|-1, peer|peer|0, and perhaps a source

Edges lead both ways. Names hold no blanks. CAIDA's files say who pays whom, which routing here does not ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from topologies.errors import InvalidTopology
from topologies.formats.raw import RawEdge, RawNetwork, RawNode, ReadOptions, text_of
from topologies.units import UnitError, parse_rate_bps

NAME = "edge list"
SUFFIXES = (".edges", ".edgelist")
_COMMENTS = r"\s*(?:#.*\n\s*)*"
_COMMENT = re.compile(r"(^|\s)#.*")
_HEADERS = {"source", "target", "from", "to", "src", "dst", "dest", "destination", "node1", "node2"}
_CAIDA = re.compile(_COMMENTS + r"\d+\|\d+\|-?[0-3]\b")


def recognises(head: str) -> bool:
    """Return whether a file that begins so is one of CAIDA's; others are known by their suffix."""
    return _CAIDA.match(head) is not None


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file.

    Raises:
        InvalidTopology: A line is no edge.
    """
    file, text = str(path), text_of(content)
    is_caida = recognises(text)
    edges = list(_caida_edges(text, file) if is_caida else _edges(text, file, options))
    nodes = [RawNode(key) for key in dict.fromkeys(end for edge in edges for end in (edge.tail, edge.head))]
    notes = []
    if is_caida:
        notes.append("who pays whom is not read: any path may be used")
    elif options.rate_unit_bps is None and any(edge.rate_bps is not None for edge in edges):
        notes.append("rates without a unit are read as bit/s (--rate-unit says otherwise)")
    return RawNetwork("", nodes, edges, tuple(notes), options.rate_unit_bps)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        held = _COMMENT.sub("", line).strip()
        if held:
            yield f"line {number}", held


def _edges(text: str, file: str, options: ReadOptions) -> Iterator[RawEdge]:
    for place, line in _lines(text):
        words = line.replace(",", " ").split()
        if len(words) < 2:
            raise InvalidTopology(place, "has to name two nodes, and perhaps a rate", file)
        tail, head, *rest = words
        if place == "line 1" and {tail.lower(), head.lower()} <= _HEADERS:
            raise InvalidTopology(place, "names columns: remove it, each line is an edge", file)
        try:
            rate_bps = parse_rate_bps(" ".join(rest), options.rate_unit_bps or 1.0) if rest else None
        except UnitError as error:
            raise InvalidTopology(place, f"after two nodes a rate may stand: {error}", file) from None
        yield RawEdge(tail, head, rate_bps, None, True, lambda place=place: place)  # type: ignore[misc]


def _caida_edges(text: str, file: str) -> Iterator[RawEdge]:
    for place, line in _lines(text):
        cells = line.split("|")
        if len(cells) < 3 or not (cells[0].isdecimal() and cells[1].isdecimal()):
            raise InvalidTopology(
                place, "has to be two numbers of systems and their relation, parted by |", file
            )
        yield RawEdge(f"AS{cells[0]}", f"AS{cells[1]}", None, None, True, lambda place=place: place)  # type: ignore[misc]
