"""SNDlib's native format: text in sections of parentheses.

NODES ( Gdansk ( 18.60 54.20 ) ... )
LINKS ( L1 ( Gdansk Warsaw ) 155.00 0.00 0.00 156.00 ( 155.00 156.00 622.00 468.00 ) ... )
DEMANDS ( D1 ( Gdansk Warsaw ) 1 195.00 UNLIMITED ... )
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeAlias

from topologies.errors import InvalidTopology
from topologies.formats.raw import RawNetwork, RawNode, ReadOptions, text_of
from topologies.formats.sndlib import DesignLink, SndlibDemand, SndlibFile, check_ends, number, raw_network

NAME = "SNDlib native"
SUFFIXES: tuple[str, ...] = ()
HEADER = "?SNDlib native format"
SECTIONS = ("META", "NODES", "LINKS", "DEMANDS", "ADMISSIBLE_PATHS")


def recognises(head: str) -> bool:
    """Return whether a file that begins so is in SNDlib's native format."""
    return head.lstrip().startswith(HEADER)


def read(path: Path, content: bytes, options: ReadOptions) -> RawNetwork:
    """Return the network in a file.

    Raises:
        InvalidTopology: It is not in this format, or says what has no meaning.
    """
    return raw_network(parse(content, str(path)), str(path), options)


@dataclass(frozen=True)
class Word:
    """A word of the file and the number of its line."""

    text: str
    line: int


Group: TypeAlias = "list[Word | Group]"
"""Words, and groups of them in parentheses."""


def parse(content: bytes, file: str) -> SndlibFile:
    """Return all that stands in a file.

    Raises:
        InvalidTopology: It is not in this format.
    """
    text = text_of(content)
    title = re.search(r"^#\s*network\s+(\S+)", text, re.MULTILINE)
    unit = re.search(r"^\s*unit\s*=\s*(\S+)", text, re.MULTILINE)
    sections = dict(_sections(_words(text), file))
    nodes = list(_nodes(sections.get("NODES", []), file))
    known = frozenset(node.key for node in nodes)
    return SndlibFile(
        title[1] if title else "",
        unit[1] if unit else "",
        nodes,
        list(_links(sections.get("LINKS", []), known, file)),
        list(_demands(sections.get("DEMANDS", []), known, file)),
        bool(sections.get("ADMISSIBLE_PATHS")),
    )


def _words(text: str) -> Iterator[Word]:
    for line, content in enumerate(text.splitlines(), start=1):
        held = content.partition("#")[0]
        if not held.lstrip().startswith("?"):
            for word in re.findall(r"[()]|[^\s()]+", held):
                yield Word(word, line)


def _sections(words: Iterator[Word], file: str) -> Iterator[tuple[str, Group]]:
    seen: set[str] = set()
    for word in words:
        if word.text in seen:
            _refuse(word.line, f"there is already a section {word.text}", file)
        seen.add(word.text)
        if word.text not in SECTIONS:
            _refuse(word.line, f"{word.text!r} is no section; there are {', '.join(SECTIONS)}", file)
        opening = next(words, None)
        if opening is None or opening.text != "(":
            _refuse(word.line, f"{word.text} has to be followed by (", file)
        yield word.text, _group(words, word, file)


def _group(words: Iterator[Word], opened: Word, file: str) -> Group:
    """Return what stands up to the closing parenthesis."""
    stack: list[Group] = [[]]
    for word in words:
        if word.text == "(":
            stack.append([])
        elif word.text != ")":
            stack[-1].append(word)
        elif len(stack) == 1:
            return stack[0]
        else:
            inner = stack.pop()
            stack[-1].append(inner)
    return _refuse(opened.line, f"{opened.text} is not closed: a ) is missing", file)


def _entries(body: Group, fields: int, what: str, file: str) -> Iterator[tuple[Word, list[list[Word]]]]:
    """Yield the entries of a section: its name, then `fields` words or groups, each as a list of words."""
    items = iter(body)
    for name in items:
        if not isinstance(name, Word):
            _refuse(_line(name), f"a {what} begins with its name", file)
        rest = []
        for _ in range(fields):
            item = next(items, None)
            if item is None:
                _refuse(name.line, f"{what} {name.text} is cut short", file)
            rest.append(
                [item] if isinstance(item, Word) else [word for word in item if isinstance(word, Word)]
            )
        yield name, rest


def _nodes(body: Group, file: str) -> Iterator[RawNode]:
    seen: set[str] = set()
    items = list(body)
    for index, name in enumerate(items):
        if not isinstance(name, Word):
            continue
        if name.text in seen:
            _refuse(name.line, f"there is already a node {name.text!r}", file)
        seen.add(name.text)
        place = items[index + 1] if index + 1 < len(items) else None
        if not isinstance(place, list):
            yield RawNode(name.text)
            continue
        try:
            x, y = (float(word.text) for word in place if isinstance(word, Word))
        except ValueError:
            _refuse(name.line, f"node {name.text}: its place has to be two numbers", file)
        yield RawNode(name.text, "", x, y, is_geographic=abs(x) <= 180 and abs(y) <= 90)


def _links(body: Group, nodes: frozenset[str], file: str) -> Iterator[DesignLink]:
    for name, (ends, installed, _, _, _, modules) in _entries(body, 6, "link", file):
        place = f"line {name.line}: link {name.text}"
        if len(ends) != 2 or len(installed) != 1:
            _refuse(name.line, f"link {name.text}: write ( source target ) and then the capacity", file)
        source, target = (word.text for word in ends)
        check_ends((source, target), nodes, place, file)
        capacities = [number(word.text, "module", place, file) for word in modules[::2]]
        yield DesignLink(
            name.text,
            source,
            target,
            number(installed[0].text, "pre-installed capacity", place, file),
            capacities,
            lambda place=place: place,  # type: ignore[misc]
        )


def _demands(body: Group, nodes: frozenset[str], file: str) -> Iterator[SndlibDemand]:
    for name, (ends, unit, value, most) in _entries(body, 4, "demand", file):
        place = f"line {name.line}: demand {name.text}"
        if len(ends) != 2 or not len(unit) == len(value) == len(most) == 1:
            _refuse(
                name.line,
                f"demand {name.text}: write ( source target ), its unit, its value and UNLIMITED",
                file,
            )
        source, target = (word.text for word in ends)
        check_ends((source, target), nodes, place, file)
        routed, limit = (
            number(each[0].text, what, place, file) for each, what in ((unit, "unit"), (most, "limit"))
        )
        amount = routed * number(value[0].text, "value", place, file)
        yield SndlibDemand(name.text, source, target, amount, place, limit)


def _line(item: Word | Group) -> int:
    while not isinstance(item, Word):
        if not item:
            return 1
        item = item[0]
    return item.line


def _refuse(line: int, reason: str, file: str) -> NoReturn:
    raise InvalidTopology(f"line {line}", reason, file)
