"""The demands of SNDlib's files, native and XML: each from its source to its target, as it is listed."""

from __future__ import annotations

import math
from pathlib import Path

from gomr import Demand

from experiments.errors import ScenarioError
from experiments.routing.formats.reading import Context, ReadDemands, rate_of, unique
from topologies.errors import InvalidTopology
from topologies.formats import sndlib_native, sndlib_xml
from topologies.formats.raw import text_of
from topologies.formats.sndlib import unit_bps

NAME = "SNDlib"
HEAD_BYTES = 4096


def recognises(path: Path, content: bytes) -> bool:
    """Return whether a file is one of SNDlib's."""
    del path
    head = text_of(content[:HEAD_BYTES])
    return sndlib_native.recognises(head) or (head.lstrip().startswith("<") and sndlib_xml.recognises(head))


def read(file: str, content: bytes, context: Context) -> ReadDemands:
    """Return the demands of a file (ScenarioError: it cannot be used)."""
    is_xml = text_of(content[:HEAD_BYTES]).lstrip().startswith("<")
    try:
        parsed = sndlib_xml.parse(content, file) if is_xml else sndlib_native.parse(content, file)
        scale_bps = unit_bps(parsed, file, context.rate_unit_bps)
    except InvalidTopology as error:
        raise ScenarioError(file, error.place, error.reason) from None
    demands, places = [], []
    for given in parsed.demands:
        begin, end = (context.end(text, file, given.place) for text in (given.source, given.target))
        demands.append(Demand(given.id, begin, end, rate_of(given.value, scale_bps, file, given.place)))
        places.append(given.place)
    notes = []
    if not parsed.unit and context.rate_unit_bps is None and not context.is_scaled:
        notes.append("the file names no unit: demands are read as Mbit/s (--rate-unit says otherwise)")
    limited = sum(math.isfinite(given.most_links) for given in parsed.demands)
    if limited:
        notes.append(
            f"{limited} demands limit the links of a path, which is not kept: give max_delay_s in a CSV"
        )
    if parsed.has_paths:
        notes.append("admissible paths are passed over: any path may be used")
    return ReadDemands(unique(demands, file, places), tuple(notes))
