"""All formats of network files, and which one a file is in."""

from __future__ import annotations

from pathlib import Path

from topologies.formats import dot, edge_list, gml, graphml, node_link, repetita, sndlib_native, sndlib_xml
from topologies.formats.raw import Format, text_of

FORMATS: tuple[Format, ...] = (graphml, gml, node_link, sndlib_native, sndlib_xml, repetita, dot, edge_list)
HEAD_BYTES = 4096


def format_of(path: Path, content: bytes) -> Format | None:
    """Return the format of a file by its beginning, or else by its suffix; None if no format knows it."""
    head = text_of(content[:HEAD_BYTES])
    suffix = path.suffix.lower()
    by_suffix = [known for known in FORMATS if suffix in known.SUFFIXES]
    by_head = [known for known in FORMATS if known.recognises(head)]
    return next(iter(by_suffix + by_head), None)


def suffixes() -> tuple[str, ...]:
    """Return the suffixes by which formats are known."""
    return tuple(suffix for known in FORMATS for suffix in known.SUFFIXES)
