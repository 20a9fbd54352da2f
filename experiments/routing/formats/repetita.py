"""The demands of REPETITA: a line each, with the numbers of the nodes and kbit/s.

DEMANDS 1
label src dest bw
demand_0 0 1 300632
"""

from __future__ import annotations

import re
from pathlib import Path

from gomr import Demand

from experiments.errors import ScenarioError
from experiments.routing.formats.reading import Context, ReadDemands, rate_of, unique
from topologies.errors import InvalidTopology
from topologies.formats.repetita import UNIT_BPS, numbered_lines, section

NAME = "REPETITA"


def recognises(path: Path, content: bytes) -> bool:
    """Return whether a file is one of REPETITA's."""
    return path.suffix.lower() == ".demands" or re.match(rb"\s*DEMANDS\s+\d+\s*\n", content[:200]) is not None


def read(file: str, content: bytes, context: Context) -> ReadDemands:
    """Return the demands of a file (ScenarioError: it cannot be used; the text names the line)."""
    lines = list(numbered_lines(content))
    try:
        span = section(lines, 0, "DEMANDS", 4, file)
    except InvalidTopology as error:
        raise ScenarioError(file, error.place, error.reason) from None
    if span.stop < len(lines):
        raise ScenarioError(file, f"line {lines[span.stop][0]}", "is one more than DEMANDS says")
    unit_bps = context.rate_unit_bps or UNIT_BPS
    demands, places = [], []
    for number, (label, source, target, rate) in (lines[index] for index in span):
        place = f"line {number}"
        begin, end = (context.end_of_key(text, file, place) for text in (source, target))
        demands.append(Demand(label, begin, end, rate_of(rate, unit_bps, file, place)))
        places.append(place)
    return ReadDemands(unique(demands, file, places))
