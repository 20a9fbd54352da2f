"""What SNDlib's two file formats share (S. Orlowski et al., "SNDlib 1.0", Networks 55(3), 2010).

SNDlib's networks are for design: a link has a pre-installed capacity, which may be 0, and modules that can be
bought. Here a link's rate is its pre-installed capacity, or else its one module, installed once; where there
are several to choose from, the file does not say what the network is, and the caller has to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from topologies.errors import InvalidTopology
from topologies.formats.raw import RawEdge, RawNetwork, RawNode, ReadOptions, Where
from topologies.units import UnitError, rate_unit_bps

DEFAULT_UNIT_BPS = 1e6
UNLIMITED = "UNLIMITED"


@dataclass(frozen=True)
class DesignLink:
    """A link with what is installed and what can be: capacities in the file's unit."""

    id: str
    source: str
    target: str
    installed: float
    modules: Sequence[float]
    where: Where


@dataclass(frozen=True)
class SndlibDemand:
    """A demand, its value (times its routing unit) in the file's unit, and the most links of a path."""

    id: str
    source: str
    target: str
    value: float
    place: str
    most_links: float = math.inf


@dataclass(frozen=True)
class SndlibFile:
    """All that is read of a file; `unit` is empty where the file names none."""

    title: str
    unit: str
    nodes: Sequence[RawNode]
    links: Sequence[DesignLink]
    demands: Sequence[SndlibDemand]
    has_paths: bool = False


def unit_bps(read: SndlibFile, file: str, options_bps: float | None) -> float:
    """Return what the file's numbers count in: what the caller says, else the file, else Mbit/s.

    Raises:
        InvalidTopology: The file names a unit that is none of rate.
    """
    if options_bps is not None:
        return options_bps
    if not read.unit:
        return DEFAULT_UNIT_BPS
    try:
        return rate_unit_bps(re.sub(r"(?i)bits?_?per_?s(ec(ond)?)?$", "bit/s", read.unit))
    except UnitError as error:
        raise InvalidTopology("unit", str(error), file) from None


def raw_network(read: SndlibFile, file: str, options: ReadOptions) -> RawNetwork:
    """Return what was read as a network.

    Raises:
        InvalidTopology: A link has several modules to choose from, or only some links have an opposite.
    """
    scale_bps = unit_bps(read, file, options.rate_unit_bps)
    notes = []
    if not read.unit and options.rate_unit_bps is None:
        notes.append("the file names no unit: rates are read as Mbit/s (--rate-unit says otherwise)")
    both_ways = options.both_ways
    if both_ways is None:
        ends = [(link.source, link.target) for link in read.links]
        both_ways = leads_both_ways(ends, [link.where for link in read.links], file)
    if both_ways is False:
        notes.append("links lead one way each: every one has its opposite in the file")
    rates = [_capacity(link, file, options) for link in read.links]
    one_module = sum(1 for link in read.links if not link.installed and len(link.modules) == 1)
    if one_module and options.default_rate_bps is None:
        notes.append(f"{one_module} links have nothing installed: their rate is that of their one module")
    unused = sum(1 for link in read.links if link.installed and link.modules)
    if unused:
        notes.append(f"modules that could be added are passed over on {unused} links")
    if read.has_paths:
        notes.append("admissible paths are passed over: any path may be used")
    edges = [
        RawEdge(
            link.source,
            link.target,
            None if capacity is None else capacity * scale_bps,
            None,
            both_ways,
            link.where,
        )
        for link, capacity in zip(read.links, rates, strict=True)
    ]
    return RawNetwork(read.title, read.nodes, edges, tuple(notes), scale_bps)


def _capacity(link: DesignLink, file: str, options: ReadOptions) -> float | None:
    """Return a link's capacity in the file's unit; None for the caller's default rate."""
    if math.isinf(link.installed) or any(map(math.isinf, link.modules)):
        raise InvalidTopology(link.where(), "has an unlimited capacity; write a number", file)
    if link.installed:
        return link.installed
    if options.default_rate_bps is not None or not link.modules:
        return None
    if len(link.modules) > 1:
        choice = ", ".join(f"{module:g}" for module in link.modules[:4])
        reason = (
            f"nothing is installed, and there are {len(link.modules)} modules to choose from ({choice}"
            f"{', ...' if len(link.modules) > 4 else ''}): give the rate of such links by --capacity, or "
            "write a pre-installed capacity"
        )
        raise InvalidTopology(link.where(), reason, file)
    return link.modules[0]


def leads_both_ways(ends: Sequence[tuple[str, str]], places: Sequence[Where], file: str) -> bool:
    """Return False if every link has its opposite, True if none has.

    Args:
        ends: source and target of each link.
        places: where each stands.
        file: for errors.

    Raises:
        InvalidTopology: Some have one.
    """
    pairs = set(ends)
    with_opposite = [where for (a, b), where in zip(ends, places, strict=True) if (b, a) in pairs]
    if not with_opposite:
        return True
    if len(with_opposite) == len(ends):
        return False
    reason = (
        f"has an opposite, as {len(with_opposite)} of {len(ends)} links do: the file does not say whether "
        "links lead both ways; give --links one-way or --links both-ways"
    )
    raise InvalidTopology(with_opposite[0](), reason, file)


def number(text: str, what: str, where: str, file: str) -> float:
    """Return a number of a file; infinity for UNLIMITED.

    Raises:
        InvalidTopology: It is not one, or is negative.
    """
    if text.upper() == UNLIMITED:
        return math.inf
    try:
        value = float(text)
    except ValueError:
        raise InvalidTopology(where, f"{what}: {text!r} is not a number", file) from None
    if not (math.isfinite(value) and value >= 0):
        raise InvalidTopology(where, f"{what}: must be a finite number of at least 0, not {text}", file)
    return value


def check_ends(ends: Iterable[str], nodes: frozenset[str], where: str, file: str) -> None:
    """Check that both ends of a link or demand are nodes.

    Raises:
        InvalidTopology: One is not.
    """
    for end in ends:
        if end not in nodes:
            raise InvalidTopology(where, f"there is no node {end!r}", file)
