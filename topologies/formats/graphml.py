"""GraphML, as The Internet Topology Zoo has it and networkx writes it."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree.ElementTree import ParseError

from topologies.errors import InvalidTopology
from topologies.formats.attributes import network_of
from topologies.formats.raw import RawNetwork, ReadOptions, Where, line_of, refuse_entities

NAME = "GraphML"
SUFFIXES = (".graphml",)


def recognises(head: str) -> bool:
    """Return whether a file that begins so is GraphML."""
    return "<graphml" in head


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file.

    Edges lead both ways if the file says `edgedefault="undirected"`, else one way each.

    Raises:
        InvalidTopology: It is not GraphML, or says what has no meaning.
    """
    # networkx is slow to import, and only files that need it should wait for it.
    import networkx as nx

    refuse_entities(content, str(path))
    try:
        graph = nx.read_graphml(io.BytesIO(content))
    except (ParseError, nx.NetworkXError, ValueError, KeyError, TypeError) as failure:
        raise InvalidTopology("", f"is not GraphML: {failure}", str(path)) from None
    text = content.decode("utf-8", "replace")
    return network_of(
        graph,
        str(path),
        options,
        lambda tail, head: _where_edge(text, tail, head),
        lambda key: _where_node(text, key),
    )


def _where_edge(text: str, tail: str, head: str) -> Where:
    def where() -> str:
        for a, b in ((tail, head), (head, tail)):
            for order in (("source", a, "target", b), ("target", b, "source", a)):
                first, second = (rf'[^>]*\b{name}="{re.escape(key)}"' for name, key in (order[:2], order[2:]))
                match = re.search(rf"<edge\b{first}{second}", text)
                if match:
                    return f"edge {tail!r}-{head!r} (line {line_of(text, match.start())})"
        return f"edge {tail!r}-{head!r}"

    return where


def _where_node(text: str, key: str) -> Where:
    def where() -> str:
        match = re.search(rf'<node\b[^>]*\bid="{re.escape(key)}"', text)
        return f"node {key!r} (line {line_of(text, match.start())})" if match else f"node {key!r}"

    return where
