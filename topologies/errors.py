"""Errors of the topologies. Catch `TopologyError` for all of them.

    TopologyError
    ├── UnknownTopology          no network, file or generator goes by this name
    ├── UnknownVariant           the network has no such variant
    ├── GeneratorError           a generator specification that cannot be read
    ├── InvalidTopology          a network that contradicts itself
    │   └── InvalidOverride      an override that does not fit the network
    └── EmulationError           the network could not be built
        ├── MininetMissing       Mininet is not installed
        ├── CommandFailed        a command of the builder failed
        └── LinkNotFaithful      a link would not be what was asked for

Every text says what is wrong, where, and what to do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class TopologyError(Exception):
    """Root of the errors of this package."""


@dataclass(eq=False)
class UnknownTopology(TopologyError):
    """Nothing is called so; `known` are the built-in networks, `grammar` says how generators are written."""

    spec: str
    known: Iterable[str]
    grammar: str

    def __post_init__(self) -> None:
        self.known = tuple(self.known)

    def __str__(self) -> str:
        return (
            f"there is no network {self.spec!r}: give a built-in one ({', '.join(self.known)}), "
            f"a file (.toml, .json, .graphml, .gml, SNDlib's or REPETITA's), or a generator ({self.grammar})"
        )


@dataclass(eq=False)
class UnknownVariant(TopologyError):
    """The network has no variant of this name."""

    network: str
    variant: str
    known: Iterable[str]

    def __post_init__(self) -> None:
        self.known = tuple(self.known)

    def __str__(self) -> str:
        known = f"it has {', '.join(self.known)}" if self.known else "it has none"
        return f"network {self.network} has no variant {self.variant!r}: {known}"


@dataclass(eq=False)
class GeneratorError(TopologyError):
    """A generator specification that cannot be read or served."""

    spec: str
    reason: str

    def __str__(self) -> str:
        return f"generator {self.spec!r}: {self.reason}"


@dataclass(eq=False)
class InvalidTopology(TopologyError):
    """A network that cannot be used.

    Attributes:
        place: Path of keys within it, as `links[3].rate_bps` or `links.S0-S4.rate_bps`; may be empty.
        reason: What is wrong there.
        file: The file it stands in; None for a network that was made by a program.
    """

    place: str
    reason: str
    file: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.place, self.reason) if part)


class InvalidOverride(InvalidTopology):
    """An override that names nothing in the network, or gives a value that does not fit."""


class EmulationError(TopologyError):
    """The network could not be built, changed or measured: its text says why."""


class MininetMissing(EmulationError):
    """Mininet's Python package is not on this machine."""


@dataclass(eq=False)
class CommandFailed(EmulationError):
    """A command of the builder failed; `output` is what it printed."""

    command: Sequence[str]
    output: str

    def __str__(self) -> str:
        return f"`{shlex.join(self.command)}` failed: {self.output.strip() or 'it gave no reason'}"


@dataclass(eq=False)
class LinkNotFaithful(EmulationError):
    """A link would not be what was asked for, so it is not built.

    Attributes:
        link: Name of the link, or `all links`.
        backend: The backend that cannot serve it.
        reason: What it cannot do, and what to do about it.
    """

    link: str
    backend: str
    reason: str

    def __str__(self) -> str:
        return f"{self.link} ({self.backend}): {self.reason}"
