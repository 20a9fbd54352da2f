"""Changes to single values of a network: `links.S0-S4.rate_bps=8e6`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from topologies.errors import InvalidOverride
from topologies.model import Link, Network, Node
from topologies.validation import validate
from topologies.wireless import WirelessLink

LINK_FIELDS = (
    *(name for name in Link.model_fields if name != "ends" and name not in WirelessLink.model_fields),
    *WirelessLink.model_fields,
)
NODE_FIELDS = ("x", "y")


def apply_overrides(
    network: Network, overrides: Mapping[str, Any], *, file: str | None = None, prefix: str = ""
) -> Network:
    """Return the network with some values changed.

    Args:
        network: the network.
        overrides: nested (`{"links": {"S0-S4": {"rate_bps": 8e6}}}`) or with dotted keys
            (`{"links.S0-S4.rate_bps": 8e6}`), or both. A link may be named in either direction. Links take
            every key but `ends`, nodes take `x` and `y`: what a network is made of stays.
        file: the file that the overrides stand in, for errors.
        prefix: where they stand in it, as `variants.b`.

    Raises:
        InvalidOverride: a link, node or key that is not there (with the nearest), or a value that does not
            fit.
    """
    lead = f"{prefix}." if prefix else ""
    links: dict[str, dict[str, Any]] = {}
    nodes: dict[str, dict[str, Any]] = {}
    canonical = {f"{a}-{b}": link.name for link in network.links for a, b in (link.ends, link.ends[::-1])}
    names = {node.name: node.name for node in network.nodes}
    for path, value in _flatten(overrides):
        key = ".".join(path)
        if path[0] == "links":
            table, known, fields = links, canonical, LINK_FIELDS
        elif path[0] == "nodes":
            table, known, fields = nodes, names, NODE_FIELDS
        else:
            raise InvalidOverride(lead + key, "a network has links.<name>.<key> and nodes.<name>.<key>", file)
        if len(path) != 3:
            raise InvalidOverride(lead + key, f"write {path[0]}.<name>.<key>", file)
        if path[1] not in known:
            raise InvalidOverride(
                lead + key, f"there is no {path[0][:-1]} {path[1]!r}; {_nearest(path[1], known)}", file
            )
        if path[2] not in fields:
            raise InvalidOverride(
                lead + key, f"there is no such key to set; there are {', '.join(fields)}", file
            )
        table.setdefault(known[path[1]], {})[path[2]] = value
    # A new object: a copy would keep what the network has cached of its old links.
    return Network(
        name=network.name,
        description=network.description,
        nodes=tuple(_changed(node, nodes, f"{lead}nodes", file) for node in network.nodes),
        links=tuple(_changed(link, links, f"{lead}links", file) for link in network.links),
    )


def _flatten(
    overrides: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in overrides.items():
        inner = (*path, *str(key).split("."))
        if isinstance(value, Mapping) and len(inner) < 3:
            yield from _flatten(value, inner)
        else:
            yield inner, value


Part = TypeVar("Part", Link, Node)


def _changed(part: Part, changes: Mapping[str, dict[str, Any]], prefix: str, file: str | None) -> Part:
    change = changes.get(part.name)
    if not change:
        return part
    data = part.model_dump()
    if isinstance(part, Link) and part.wifi:
        # They follow from the rate of the physical layer, which may be what is changed.
        del data["rate_bps"], data["delay_us"]
    data.update(change)
    return validate(type(part), data, file=file, prefix=f"{prefix}.{part.name}", error=InvalidOverride)


def _nearest(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    return (
        f"the nearest are {', '.join(near)}" if near else f"there are {len(names)}, as {', '.join(names[:3])}"
    )
