"""Graphviz's DOT, as YATES (P. Kumar et al., SOSR 2018) and other tools write networks.

    digraph topology {
        h1 [type="host"];
        s1 [type="switch"];
        h1 -> s1 [capacity="10Gbps"];
        s1 -> s2 [capacity="1Gbps", cost="1"];
    }

Rates and delays are read from attributes as in GraphML. A host that hangs on one switch stands for it: its
traffic begins and ends there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from topologies.errors import InvalidTopology
from topologies.formats.attributes import network_of
from topologies.formats.raw import RawNetwork, ReadOptions, Where, text_of

NAME = "DOT"
SUFFIXES = (".dot", ".gv")
_COMMENT = r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*"
_IN_WORD = r'[^\s"\[\]{}=;,:>-]'
_TOKEN = re.compile(
    rf'(?:{_COMMENT}|\s+)|"((?:[^"\\]|\\.)*)"|(->|--|[\[\]{{}}=;,:])|(-?{_IN_WORD}+(?:-(?![->]){_IN_WORD}*)*)',
    re.DOTALL | re.MULTILINE,
)
_DEFAULTS = ("node", "edge", "graph")


def recognises(head: str) -> bool:
    """Return whether a file that begins so is in DOT."""
    opening = rf"(?:{_COMMENT}|\s+)*(strict\s+)?(di)?graph\b[^\[\]]*?\{{"
    return re.match(opening, head, re.DOTALL | re.MULTILINE | re.IGNORECASE) is not None


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file; edges of a `graph` lead both ways, of a `digraph` one.

    Raises:
        InvalidTopology: It is not in this format, or says what has no meaning.
    """
    # networkx is slow to import, and only files that need it should wait for it.
    import networkx as nx

    file = str(path)
    tokens = list(_tokens(text_of(content), file))
    opening = next((at for at, (_, text) in enumerate(tokens) if text == "{"), None)
    if opening is None or not tokens or tokens[-1][1] != "}":
        raise InvalidTopology("", "is not DOT: it has to be graph or digraph and { ... }", file)
    if any(text.lower() in ("{", "}", "subgraph") for _, text in tokens[opening + 1 : -1]):
        raise InvalidTopology("", "has a subgraph, which is not read: write its edges out", file)
    directed = any(text.lower() == "digraph" for _, text in tokens[:opening])
    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    defaults: dict[str, dict[str, Any]] = {kind: {} for kind in _DEFAULTS}
    for ends, attributes in _statements(tokens[opening + 1 : -1]):
        if len(ends) == 1 and ends[0].lower() in _DEFAULTS:
            defaults[ends[0].lower()].update(attributes)
            continue
        graph.add_nodes_from((end for end in ends if end not in graph), **defaults["node"])
        if len(ends) == 1:
            graph.nodes[ends[0]].update(attributes)
        for pair in pairwise(ends):
            graph.add_edge(*pair, **{**defaults["edge"], **attributes})

    def where(*keys: str) -> Where:
        return lambda: "-".join(map(repr, keys))

    return _without_hosts(network_of(graph, file, options, where, where), graph)


def _tokens(text: str, file: str) -> Iterator[tuple[bool, str]]:
    """Yield the words and signs of a text, and whether each is a word."""
    at, is_port = 0, False
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise InvalidTopology("", f"is not DOT: {text[at : at + 20]!r} is not understood", file)
        at = found.end()
        quoted, sign, word = found.groups()
        if sign == ":" or (is_port and found.lastindex is not None):
            is_port = sign == ":"  # of a node, or its compass point
        elif found.lastindex is not None:
            yield sign is None, sign or word or quoted or ""


def _statements(tokens: list[tuple[bool, str]]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Yield the nodes that each statement names, joined by edges, and its attributes."""
    ends: list[str] = []
    attributes: dict[str, str] = {}
    inside = joined = False
    at = 0
    while at < len(tokens):
        is_word, text = tokens[at]
        follows = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        if is_word and follows == "=" and at + 2 < len(tokens):
            if inside:
                attributes[text] = tokens[at + 2][1]
            at += 3
            continue
        if is_word and not inside:
            if ends and not joined:
                yield ends, attributes
                ends, attributes = [], {}
            ends.append(text)
            joined = False
        elif text in ("->", "--"):
            joined = True
        elif text in "[]":
            inside = text == "["
        elif text == ";" and not inside and ends:
            yield ends, attributes
            ends, attributes = [], {}
        at += 1
    if ends:
        yield ends, attributes


def _without_hosts(raw: RawNetwork, graph: Any) -> RawNetwork:
    """Return the network of switches alone, where each host hangs on one."""
    hosts = {key for key, data in graph.nodes(data=True) if str(data.get("type", "")).lower() == "host"}
    near: dict[str, set[str]] = {host: set() for host in hosts}
    for edge in raw.edges:
        for one, other in ((edge.tail, edge.head), (edge.head, edge.tail)):
            if one in hosts:
                near[one].add(other)
    if not hosts or any(len(own) != 1 or own <= hosts for own in near.values()):
        return raw
    nodes = [node for node in raw.nodes if node.key not in hosts]
    edges = [edge for edge in raw.edges if edge.tail not in hosts and edge.head not in hosts]
    note = f"{len(hosts)} hosts stand for the switches that they hang on"
    aliases = {host: next(iter(own)) for host, own in sorted(near.items())}
    return replace(raw, nodes=nodes, edges=edges, aliases=aliases, notes=(*raw.notes, note))
