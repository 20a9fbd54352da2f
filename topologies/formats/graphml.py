"""GraphML, as The Internet Topology Zoo has it and networkx writes it."""

from __future__ import annotations

import copy
import io
import re
from pathlib import Path
from xml.etree import ElementTree

from topologies.errors import InvalidTopology
from topologies.formats.attributes import network_of
from topologies.formats.raw import RawNetwork, ReadOptions, Where, line_of, text_of, xml_of

NAME = "GraphML"
SUFFIXES = (".graphml",)
_XMLNS = "http://graphml.graphdrawing.org/xmlns"


def recognises(head: str) -> bool:
    """Return whether a file that begins so is GraphML."""
    return "<graphml" in head


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file.

    Edges lead both ways if the file says `edgedefault="undirected"`, else one way each; an edge may say
    otherwise of itself.

    Raises:
        InvalidTopology: It is not GraphML, or says what has no meaning.
    """
    # networkx is slow to import, and only files that need it should wait for it.
    import networkx as nx

    root = xml_of(content, str(path), NAME)
    try:
        _write_out(root)
        _one_value_a_name(root, str(path))
        _one_kind_of_edges(root)
        root.set("xmlns", _XMLNS)
        graph = nx.read_graphml(io.BytesIO(ElementTree.tostring(root)), force_multigraph=True)
    except (nx.NetworkXError, ValueError, KeyError, TypeError) as failure:
        raise InvalidTopology("", f"is not GraphML: {failure}", str(path)) from None
    text = text_of(content)
    return network_of(
        graph,
        str(path),
        options,
        lambda tail, head: _where_edge(text, tail, head),
        lambda key: _where_node(text, key),
    )


def _write_out(root: ElementTree.Element) -> None:
    """Give nodes and edges the defaults of keys, and keys their type; networkx passes over both.

    Ports, which it warns of, are left out.
    """
    defaults: dict[str, list[tuple[str, str]]] = {"node": [], "edge": []}
    for key in root.iter("key"):
        key.attrib.setdefault("attr.type", "string")
        default = key.find("default")
        if default is not None:
            key.remove(default)
            for kind in defaults if key.get("for", "all") == "all" else (key.get("for", ""),):
                defaults.get(kind, []).append((key.get("id", ""), default.text or ""))
    for kind, own in defaults.items():
        for element in root.iter(kind):
            for port in element.findall("port"):
                element.remove(port)
            for end in ("sourceport", "targetport"):
                element.attrib.pop(end, None)
            given = {data.get("key") for data in element.findall("data")}
            for name, value in own:
                if name not in given:
                    ElementTree.SubElement(element, "data", key=name).text = value


def _one_value_a_name(root: ElementTree.Element, file: str) -> None:
    """Refuse a node or edge that has different values under two keys of one name.

    Raises:
        InvalidTopology: One has; it does not say which of them holds.
    """
    names = {key.get("id"): key.get("attr.name") for key in root.iter("key")}
    for kind, title in (("node", ("id",)), ("edge", ("source", "target"))):
        for element in root.iter(kind):
            values: dict[str | None, tuple[str, str]] = {}
            for data in element.findall("data"):
                key, value = data.get("key", ""), (data.text or "").strip()
                before = values.setdefault(names.get(key), (key, value))
                if names.get(key) is not None and not _alike(before[1], value):
                    place = f"{kind} {'-'.join(repr(element.get(name)) for name in title)}"
                    reason = (
                        f"has {before[1]} under key {before[0]} and {value} under {key}, and both are called "
                        f"{names[key]}: leave the one that holds and remove the other"
                    )
                    raise InvalidTopology(place, reason, file)


def _alike(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def _one_kind_of_edges(root: ElementTree.Element) -> None:
    """Make edges of one kind of those that differ from the graph's default, and no two of one id.

    networkx reads no graph of both kinds, and takes edges of one id for one.
    """
    for graph in root.iter("graph"):
        edges = graph.findall("edge")
        default = str(graph.get("edgedefault") != "undirected").lower()
        kinds = {edge.get("directed", default) for edge in edges}
        for edge in edges:
            edge.attrib.pop("id", None)
            is_directed = edge.attrib.pop("directed", default) == "true"
            if len(kinds) > 1 and not is_directed:
                back = copy.deepcopy(edge)
                back.set("source", edge.get("target", ""))
                back.set("target", edge.get("source", ""))
                graph.append(back)
        if kinds:
            graph.set("edgedefault", "directed" if "true" in kinds else "undirected")


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
