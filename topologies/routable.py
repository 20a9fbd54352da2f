"""Networks to route over: as `load` has them, and those whose links differ between their two directions.

A file's nodes keep the names that the file gives them beside their own, so that demands in other files can
use them.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from topologies.errors import InvalidTopology
from topologies.formats.raw import ReadOptions
from topologies.load import foreign_file, load_own
from topologies.model import Network


class UnknownNode(ValueError):
    """Nothing in a network is called so, or several nodes are; its text says what there is."""


@dataclass(frozen=True)
class NodeNames:
    """What files may call the nodes of a network.

    Attributes:
        names: The nodes, by name.
        keys: The node of each key in the network's file, in file order; empty for other networks.
        labels: The nodes of each label in the network's file.
    """

    names: tuple[str, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def resolve(self, text: str) -> str:
        """Return the node that is called so: by its name, its key in the file, or its label.

        Raises:
            UnknownNode: None is, or several are.
        """
        known = self._known.get(text)
        if known is None:
            near = difflib.get_close_matches(text, self._known, n=1)
            raise UnknownNode(f"there is no node {text!r}" + (f"; did you mean {near[0]}?" if near else ""))
        if len(known) > 1:
            raise UnknownNode(f"{text!r} may be any of {', '.join(sorted(known))}; write one of these names")
        return next(iter(known))

    def in_order(self, count: int, ends: tuple[str, ...]) -> tuple[str, ...]:
        """Return the nodes that the rows and columns of a matrix without names stand for.

        Row i is the node whose key in the file is i, if the keys are the numbers from 0; else the rows are
        the nodes in the file's order.

        Args:
            count: Number of rows.
            ends: Where flows begin and end, in order.

        Raises:
            UnknownNode: The matrix has another size, or the numbers of the nodes are in another order than
                the nodes, so that rows could mean either.
        """
        if count != len(ends):
            raise UnknownNode(f"the matrix has {count} rows; the network has {len(ends)} nodes for flows")
        if not self.keys or not all(key.isdecimal() for key in self.keys):
            return ends
        numbers = sorted(self.keys, key=int)
        if [int(key) for key in numbers] == list(range(count)):
            return tuple(self.keys[key] for key in numbers)
        if list(self.keys) != numbers:
            raise UnknownNode(
                "rows without names could stand for the nodes by their numbers or in the file's order, which "
                "differ: give the matrix as CSV with the names of the nodes in its first row and column"
            )
        return ends

    @cached_property
    def _known(self) -> Mapping[str, set[str]]:
        known = {name: {name} for name in self.names}
        for key, name in self.keys.items():
            known.setdefault(key, set()).add(name)
        for label, names in self.labels.items():
            known.setdefault(label, set()).update(names)
        return known


@dataclass(frozen=True)
class Routable:
    """A network and what its file says beyond it.

    Attributes:
        network: The network.
        nodes: What files may call its nodes.
        notes: Sentences on what was assumed or left out.
        rate_unit_bps: What the file's rates without a unit count in, if the file or the caller says so.
    """

    network: Network
    nodes: NodeNames
    notes: tuple[str, ...] = ()
    rate_unit_bps: float | None = None


def load_routable(spec: str | os.PathLike[str], options: ReadOptions | None = None) -> Routable:
    """Return a network to route over; nodes of files that know no hosts get none, flows run between them.

    Args:
        spec: As `topologies.load` takes it.
        options: What a file does not say; only for formats other than this project's own.

    Raises:
        TopologyError: Nothing is called so, it cannot be used, or options are given that it has no use for.
    """
    text = os.fspath(spec)
    options = options or ReadOptions()
    foreign = foreign_file(text)
    if foreign is None:
        network = load_own(text, None)
        _refuse_options(text, options)
        return Routable(network, NodeNames(tuple(node.name for node in network.nodes)))
    raw, made = foreign.network(options, with_hosts=False)
    nodes = NodeNames(made.network.switches, made.keys, made.labels)
    return Routable(made.network, nodes, made.notes, raw.rate_unit_bps)


def _refuse_options(text: str, options: ReadOptions) -> None:
    for name, value, lacking in (
        ("--capacity", options.default_rate_bps, "have no rate; here every link has one"),
        ("--delay-unit", options.delay_unit_us, "have delays without a unit; here every delay has one"),
        ("--links", options.both_ways, "do not say how they lead; here every link does"),
        ("--ignore-planned", options.ignore_planned or None, "are only planned; here every link is there"),
        ("--largest-part", options.largest_part or None, "are not connected; here they are"),
    ):
        if value is not None:
            reason = f"is for links of a GraphML file (or one of another format) that {lacking}"
            raise InvalidTopology(name, reason, text)
