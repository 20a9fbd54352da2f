"""`load`: one way to every network, whether built in, in a file or generated."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from topologies.check import check_network, check_symmetric
from topologies.errors import InvalidTopology, UnknownTopology, UnknownVariant
from topologies.formats.assembly import Assembled, assemble
from topologies.formats.node_link import is_node_link
from topologies.formats.raw import Format, RawNetwork, ReadOptions
from topologies.formats.registry import FORMATS, format_of, suffixes
from topologies.generators import GENERATORS, GRAMMAR, generate
from topologies.model import Network
from topologies.overrides import apply_overrides
from topologies.toml_loader import load_toml
from topologies.validation import validate

LARGEST_PART = "#largest-part"
"""After the name of a file: of a network of several parts take the largest."""
NETWORK_FOLDER = Path(__file__).parent / "networks"


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in networks, sorted."""
    return tuple(sorted(path.stem for path in NETWORK_FOLDER.glob("*.toml")))


def load(
    spec: str | os.PathLike[str], variant: str | None = None, overrides: Mapping[str, Any] | None = None
) -> Network:
    """Return a checked network that can be emulated and simulated: its links are alike in both directions.

    Args:
        spec: a built-in name (`butterfly`), the path of a .toml file, of a .json file (a dumped `Network`) or
            of one in a format of `topologies.formats` (its nodes become switches with a host each; after the
            path, `#largest-part` leaves the smaller parts of a network out), or a generator (`ring:6`,
            `waxman:12:seed=1`).
        variant: a variant of a built-in network or .toml file.
        overrides: changes to single values, as `topologies.apply_overrides` takes them.

    Raises:
        TopologyError: nothing is called so, or it is not a network that can be used.
    """
    text = os.fspath(spec)
    foreign = foreign_file(text)
    if foreign is None:
        network = load_own(text, variant)
    else:
        network = foreign.network(ReadOptions(), with_hosts=True)[1].network
        _refuse_variant(network, variant)
    if overrides:
        network = apply_overrides(network, overrides)
    check_symmetric(network, text if foreign else None)
    return network


@dataclass(frozen=True)
class ForeignFile:
    """A file in a format that is not this project's own."""

    path: Path
    content: bytes
    format: Format
    largest_part: bool = False

    def network(self, options: ReadOptions, *, with_hosts: bool) -> tuple[RawNetwork, Assembled]:
        """Return what the file says and the network that is made of it.

        Args:
            options: What the file does not say.
            with_hosts: Give every node a host, and refuse a network of several parts.

        Raises:
            InvalidTopology: It is no network that can be used.
        """
        if self.largest_part:
            options = replace(options, largest_part=True)
        raw = self.format.read(self.path, self.content, options)
        made = assemble(raw, self.path, options, with_hosts=with_hosts, need_connected=with_hosts)
        return raw, made


def foreign_file(text: str) -> ForeignFile | None:
    """Return the file that a specification names, if it is in a format of `topologies.formats`.

    Raises:
        InvalidTopology: The file cannot be read, or is in no format that is known.
    """
    name, part, _ = text.partition(LARGEST_PART)
    path = Path(name)
    suffix = path.suffix.lower()
    if text in builtin_names() or suffix == ".toml":
        return None
    if suffix not in (*suffixes(), ".json") and not path.is_file():
        return None
    try:
        content = path.read_bytes()
    except OSError as failure:
        raise InvalidTopology("", f"cannot be read: {failure.strerror}", text) from None
    known = format_of(path, content)
    if suffix == ".json":
        return ForeignFile(path, content, known, bool(part)) if known and _is_node_link(content) else None
    if known is None:
        names = ", ".join(each.NAME for each in FORMATS)
        raise InvalidTopology("", f"is in no format of networks that is known ({names}, TOML, JSON)", text)
    return ForeignFile(path, content, known, bool(part))


def load_own(text: str, variant: str | None) -> Network:
    """Return a network that is built in, in a file of this project's formats, or generated.

    Raises:
        TopologyError: Nothing is called so, or it is not a network that can be used.
    """
    if text in builtin_names():
        return load_toml(NETWORK_FOLDER / f"{text}.toml", variant)
    suffix = Path(text).suffix.lower()
    if suffix == ".toml":
        return load_toml(Path(text), variant)
    if suffix == ".json":
        network = _load_json(Path(text))
    elif text.split(":")[0] in GENERATORS:
        network = generate(text)
    else:
        raise UnknownTopology(text, builtin_names(), GRAMMAR)
    _refuse_variant(network, variant)
    return network


def _refuse_variant(network: Network, variant: str | None) -> None:
    if variant is not None:
        raise UnknownVariant(network.name, variant, ())


def _is_node_link(content: bytes) -> bool:
    try:
        return is_node_link(json.loads(content))
    except ValueError:
        return False


def _load_json(path: Path) -> Network:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InvalidTopology("", f"cannot be read: {failure.strerror}", str(path)) from None
    except ValueError as failure:
        raise InvalidTopology("", f"is not JSON: {failure}", str(path)) from None
    network = validate(Network, data, file=str(path))
    check_network(network, str(path))
    return network
