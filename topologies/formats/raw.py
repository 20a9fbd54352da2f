"""What the readers of all formats return, and what they are told."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree
from xml.parsers import expat

from topologies.errors import InvalidTopology

Where = Callable[[], str]
"""Says where in a file something stands, as `line 7: edge 'a'-'b'`; it may have to search for it."""


@dataclass(frozen=True)
class ReadOptions:
    """What a caller knows of a file that the file does not say.

    Attributes:
        default_rate_bps: Rate of links that have none; None: 1 Gbit/s.
        rate_unit_bps: What rates without a unit count in; None: what is usual in the format.
        delay_unit_us: The same of delays.
        both_ways: Whether a link of a format that does not say so leads both ways (SNDlib); None: both ways,
            unless every link has its opposite.
        ignore_planned: Leave links out that are only planned (Topology Zoo).
        largest_part: Of a network of several parts take the largest alone.
    """

    default_rate_bps: float | None = None
    rate_unit_bps: float | None = None
    delay_unit_us: float | None = None
    both_ways: bool | None = None
    ignore_planned: bool = False
    largest_part: bool = False


@dataclass(frozen=True)
class RawNode:
    """A node as a file has it.

    Attributes:
        key: What edges and demands call it.
        label: What people call it; empty if the file does not say.
        x: Place on drawings, or longitude in degrees.
        y: The same, or latitude.
        is_geographic: Whether the place is one on earth.
    """

    key: str
    label: str = ""
    x: float | None = None
    y: float | None = None
    is_geographic: bool = False


@dataclass(frozen=True)
class RawEdge:
    """An edge as a file has it.

    Attributes:
        tail: Key of the node where it begins.
        head: Where it ends.
        rate_bps: None if the file does not say.
        delay_us: The same.
        both_ways: Whether it leads back too, with the same rate and delay.
        where: Its place in the file, for errors.
    """

    tail: str
    head: str
    rate_bps: float | None
    delay_us: float | None
    both_ways: bool
    where: Where


@dataclass(frozen=True)
class RawNetwork:
    """A network as a file has it.

    Attributes:
        title: What the file calls it; empty if it does not say.
        nodes: In file order.
        edges: In file order.
        notes: Sentences on what was assumed or passed over.
        rate_unit_bps: What numbers without a unit count in, for demands that come with it; None: the file
            does not say.
        aliases: Keys of nodes by other names that demands may have for them.
    """

    title: str
    nodes: Sequence[RawNode]
    edges: Sequence[RawEdge]
    notes: Sequence[str] = field(default=())
    rate_unit_bps: float | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)


class Format(Protocol):
    """A format of network files: a module of this package."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """What people call it."""

    @property
    def SUFFIXES(self) -> tuple[str, ...]:  # noqa: N802 - a module's constant
        """Endings of its files' names; () for those known by their content alone."""

    def recognises(self, head: str) -> bool:
        """Return whether a file that begins so is in this format; for files with another suffix."""

    def read(self, path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
        """Return the network in a file.

        Raises:
            InvalidTopology: It is not in this format, or says what has no meaning.
        """


def text_of(content: bytes) -> str:
    """Return a text with its lines ended by a line feed each.

    It is in the encoding that its byte order mark tells, without one in UTF-8, or else in Latin-1.
    """
    marks = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
    encoding = next((name for mark, name in marks if content.startswith(mark)), None)
    try:
        text = content.decode(encoding or "utf-8", "replace" if encoding else "strict")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def line_of(text: str, position: int) -> int:
    """Return the number of the line in which a position of a text lies, from 1."""
    return text.count("\n", 0, position) + 1


def xml_of(content: bytes, file: str, kind: str) -> ElementTree.Element:
    """Return the root of an XML file, its tags without their namespace: files have it or not.

    Raises:
        InvalidTopology: It is not XML, or declares entities, which can grow without bound and none needs.
    """

    def refuse(*_: object) -> None:
        raise InvalidTopology("", "declares XML entities, which are not read: write them out", file)

    parser = expat.ParserCreate()  # it knows the file's encoding, in which the declaration may stand
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
        root = ElementTree.fromstring(content)  # noqa: S314 - entities are refused above
    except (expat.ExpatError, ElementTree.ParseError) as failure:
        raise InvalidTopology("", f"is not {kind}: {failure}", file) from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
