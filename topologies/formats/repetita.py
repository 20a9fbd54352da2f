"""The text format of REPETITA (S. Gay, P. Schaus, S. Vissicchio, arXiv:1710.08665).

    NODES 2
    label x y
    0_Paris 2.35 48.85
    1_Lyon 4.83 45.76

    EDGES 1
    label src dest weight bw delay
    edge_0 0 1 10 9953280 1913

Edges are directed and name nodes by their number, from 0. Bandwidths are in kbit/s, delays in microseconds,
as in REPETITA's Topology Zoo data; those of its Rocketfuel data (`rf1221.graph`) in milliseconds.
The caller can say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from topologies.errors import InvalidTopology
from topologies.formats.raw import RawEdge, RawNetwork, RawNode, ReadOptions, text_of
from topologies.units import UnitError, parse_rate_bps, parse_time_us

NAME = "REPETITA"
SUFFIXES = (".graph",)
UNIT_BPS = 1e3
UNIT_US = 1.0
ROCKETFUEL_US = 1e3
_ROCKETFUEL = re.compile(r"rocket_?fuel|^rf\d+", re.IGNORECASE)


def recognises(head: str) -> bool:
    """Return whether a file that begins so is a network of REPETITA's."""
    return re.match(r"\s*NODES\s+\d+\s*\n\s*label\b", head) is not None


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file.

    Raises:
        InvalidTopology: It is not in this format, or says what has no meaning.
    """
    file = str(path)
    lines = list(numbered_lines(content))
    nodes_at = section(lines, 0, "NODES", 3, file)
    edges_at = section(lines, nodes_at.stop, "EDGES", 6, file)
    if edges_at.stop < len(lines):
        number, cells = lines[edges_at.stop]
        raise InvalidTopology(f"line {number}", f"is one more than EDGES says: {' '.join(cells)!r}", file)
    nodes = [_node(*lines[index], index - nodes_at.start, file) for index in nodes_at]
    notes = ["the edges' IGP weights are not read"]
    if options.delay_unit_us is None:
        is_rocketfuel = _ROCKETFUEL.search(path.name) is not None
        options = replace(options, delay_unit_us=ROCKETFUEL_US if is_rocketfuel else UNIT_US)
        unit, whose = ("ms", "Rocketfuel") if is_rocketfuel else ("us", "Topology Zoo")
        notes.append(
            f"delays are read as {unit}, as in REPETITA's {whose} data (--delay-unit says otherwise)"
        )
    edges = [_edge(*lines[index], len(nodes), file, options) for index in edges_at]
    unit_bps = options.rate_unit_bps or UNIT_BPS
    return RawNetwork("", nodes, edges, tuple(notes), unit_bps)


def numbered_lines(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of each line that holds some."""
    for number, line in enumerate(text_of(content).splitlines(), start=1):
        words = line.split()
        if words:
            yield number, words


def section(lines: list[tuple[int, list[str]]], start: int, name: str, words: int, file: str) -> range:
    """Return where the lines of a section stand: after its title with their number, and a header.

    Raises:
        InvalidTopology: It is not there, is cut short, or a line has another number of words.
    """
    if start >= len(lines) or lines[start][1][0] != name:
        place = f"line {lines[start][0]}" if start < len(lines) else ""
        raise InvalidTopology(place, f"here {name} and their number have to stand", file)
    number, title = lines[start]
    try:
        count = int(title[1])
    except (IndexError, ValueError):
        raise InvalidTopology(f"line {number}", f"{name} has to be followed by their number", file) from None
    span = range(start + 2, start + 2 + count)
    if span.stop > len(lines):
        reason = f"says {count} {name}, but only {max(0, len(lines) - span.start)} lines follow"
        raise InvalidTopology(f"line {number}", reason, file)
    for index in span:
        if len(lines[index][1]) != words:
            reason = f"has {len(lines[index][1])} words where {name} have {words}"
            raise InvalidTopology(f"line {lines[index][0]}", reason, file)
    return span


def _node(number: int, cells: list[str], index: int, file: str) -> RawNode:
    label, *place = cells
    try:
        x, y = map(float, place)
    except ValueError:
        raise InvalidTopology(f"line {number}", "x and y have to be numbers", file) from None
    # Where all places are 0 0, REPETITA knows none; layout finds some.
    known = (x, y) != (0.0, 0.0)
    name = label.removeprefix(f"{index}_").replace("_", " ")
    return RawNode(str(index), name, x if known else None, y if known else None)


def _edge(number: int, cells: list[str], nodes: int, file: str, options: ReadOptions) -> RawEdge:
    label, source, target, _, rate, delay = cells
    place = f"line {number}: edge {label}"
    for end in (source, target):
        if not (end.isdecimal() and int(end) < nodes):
            raise InvalidTopology(place, f"{end!r} is not the number of a node (0 to {nodes - 1})", file)
    try:
        rate_bps = parse_rate_bps(rate, options.rate_unit_bps or UNIT_BPS)
        delay_us = parse_time_us(delay, options.delay_unit_us)
    except UnitError as error:
        raise InvalidTopology(place, str(error), file) from None
    return RawEdge(str(int(source)), str(int(target)), rate_bps, delay_us, False, lambda: place)
