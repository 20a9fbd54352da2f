"""SNDlib's XML format."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from topologies.errors import InvalidTopology
from topologies.formats.raw import RawNetwork, RawNode, ReadOptions, line_of, text_of, xml_of
from topologies.formats.sndlib import (
    UNLIMITED,
    DesignLink,
    SndlibDemand,
    SndlibFile,
    check_ends,
    number,
    raw_network,
)

NAME = "SNDlib XML"
SUFFIXES: tuple[str, ...] = ()


def recognises(head: str) -> bool:
    """Return whether a file that begins so is in SNDlib's XML format."""
    return re.search(r"<network\b", head) is not None


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file.

    Raises:
        InvalidTopology: It is not in this format, or says what has no meaning.
    """
    return raw_network(parse(content, str(path), path.stem), str(path), options)


def parse(content: bytes, file: str, title: str = "") -> SndlibFile:
    """Return all that stands in a file.

    Raises:
        InvalidTopology: It is not in this format.
    """
    root = xml_of(content, file, "XML")
    text = text_of(content)
    structure = root.find("networkStructure")
    if root.tag != "network" or structure is None:
        raise InvalidTopology("", "is not SNDlib's XML: it needs network and networkStructure", file)
    geographic = structure.find("nodes[@coordinatesType='geographical']") is not None
    nodes = [
        _node(element, geographic, file, _place(text, element))
        for element in structure.iterfind("nodes/node")
    ]
    known = frozenset(node.key for node in nodes)
    if len(known) < len(nodes):
        raise InvalidTopology("nodes", "two nodes have the same id", file)
    return SndlibFile(
        title,
        (root.findtext("meta/unit") or "").strip(),
        nodes,
        list(_links(structure, known, text, file)),
        list(_demands(root, known, text, file)),
        root.find("demands/demand/admissiblePaths") is not None,
    )


def _place(text: str, element: ElementTree.Element) -> str:
    """Return where an element stands."""
    name = element.get("id", "")
    match = re.search(rf'<{element.tag}\b[^>]*\bid="{re.escape(name)}"', text)
    return f"line {line_of(text, match.start())}: {element.tag} {name}" if match else f"{element.tag} {name}"


def _node(element: ElementTree.Element, geographic: bool, file: str, place: str) -> RawNode:
    key = element.get("id", "")
    x, y = (element.findtext(f"coordinates/{name}") for name in ("x", "y"))
    if x is None or y is None:
        return RawNode(key)
    try:
        return RawNode(key, "", float(x), float(y), is_geographic=geographic)
    except ValueError:
        raise InvalidTopology(place, "its coordinates have to be two numbers", file) from None


def _links(
    structure: ElementTree.Element, nodes: frozenset[str], text: str, file: str
) -> Iterator[DesignLink]:
    for element in structure.iterfind("links/link"):
        source, target = _ends(element, nodes, text, file)

        def capacity(value: str, element: ElementTree.Element = element) -> float:
            return number(value.strip(), "capacity", _place(text, element), file)

        installed = element.findtext("preInstalledModule/capacity")
        yield DesignLink(
            element.get("id", ""),
            source,
            target,
            0.0 if installed is None else capacity(installed),
            [
                capacity(module.text or "")
                for module in element.iterfind("additionalModules/addModule/capacity")
            ],
            lambda element=element: _place(text, element),  # type: ignore[misc]
        )


def _demands(
    root: ElementTree.Element, nodes: frozenset[str], text: str, file: str
) -> Iterator[SndlibDemand]:
    for element in root.iterfind("demands/demand"):
        name = element.get("id", "")
        source, target = _ends(element, nodes, text, file)
        given = (element.findtext("demandValue") or "").strip()
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= 0):
            reason = f"demandValue: must be a finite number of at least 0, not {given!r}"
            raise InvalidTopology(_place(text, element), reason, file)
        unit, limit = (
            number((element.findtext(field) or default).strip(), field, f"demand {name}", file)
            for field, default in (("routingUnit", "1"), ("maxPathLength", UNLIMITED))
        )
        yield SndlibDemand(name, source, target, value * unit, f"demand {name}", limit)


def _ends(element: ElementTree.Element, nodes: frozenset[str], text: str, file: str) -> tuple[str, str]:
    source, target = ((element.findtext(name) or "").strip() for name in ("source", "target"))
    if source not in nodes or target not in nodes:
        check_ends((source, target), nodes, _place(text, element), file)
    return source, target
