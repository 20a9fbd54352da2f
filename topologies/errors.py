"""Errors of the topologies. Catch `TopologyError` for all of them.

    TopologyError
    ├── UnknownTopology          no network, file or generator goes by this name; carries `spec`, `known`
    ├── UnknownVariant           the network has no such variant; carries `network`, `variant`, `known`
    ├── GeneratorError           a generator specification that cannot be read; carries `spec`, `reason`
    ├── InvalidTopology          a network that contradicts itself; carries `file`, `place`, `reason`
    │   └── InvalidOverride      an override that does not fit the network
    └── EmulationError           the network could not be built; carries `reason`
        ├── MininetMissing       Mininet is not installed
        ├── CommandFailed        a command of the builder failed; carries `command`, `output`
        └── LinkNotFaithful      a link would not be what was asked for; carries `link`, `backend`

Every text says what is wrong, where, and what to do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

__all__ = [
    "CommandFailed",
    "EmulationError",
    "GeneratorError",
    "InvalidOverride",
    "InvalidTopology",
    "LinkNotFaithful",
    "MininetMissing",
    "TopologyError",
    "UnknownTopology",
    "UnknownVariant",
]


class TopologyError(Exception):
    """Root of the errors of this package."""


class UnknownTopology(TopologyError):
    """Nothing is called so.

    Attributes:
        spec: What was asked for.
        known: The built-in networks.
        grammar: How generators are written.
    """

    def __init__(self, spec: str, known: Iterable[str], grammar: str) -> None:
        super().__init__(spec)
        self.spec = spec
        self.known = tuple(known)
        self.grammar = grammar

    def __str__(self) -> str:
        return (
            f"there is no network {self.spec!r}: give a built-in one ({', '.join(self.known)}), "
            f"a file (.toml, .json, .graphml, .gml, SNDlib's or REPETITA's), or a generator ({self.grammar})"
        )


class UnknownVariant(TopologyError):
    """The network has no variant of this name."""

    def __init__(self, network: str, variant: str, known: Iterable[str]) -> None:
        super().__init__(network, variant)
        self.network = network
        self.variant = variant
        self.known = tuple(known)

    def __str__(self) -> str:
        known = f"it has {', '.join(self.known)}" if self.known else "it has none"
        return f"network {self.network} has no variant {self.variant!r}: {known}"


class GeneratorError(TopologyError):
    """A generator specification that cannot be read or served."""

    def __init__(self, spec: str, reason: str) -> None:
        super().__init__(spec, reason)
        self.spec = spec
        self.reason = reason

    def __str__(self) -> str:
        return f"generator {self.spec!r}: {self.reason}"


class InvalidTopology(TopologyError):
    """A network that cannot be used.

    Attributes:
        file: The file it stands in; None for a network that was made by a program.
        place: Path of keys within it, as `links[3].rate_bps` or `links.S0-S4.rate_bps`; may be empty.
        reason: What is wrong there.
    """

    def __init__(self, place: str, reason: str, file: str | None = None) -> None:
        super().__init__(place, reason, file)
        self.place = place
        self.reason = reason
        self.file = file

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.place, self.reason) if part)


class InvalidOverride(InvalidTopology):
    """An override that names nothing in the network, or gives a value that does not fit."""


class EmulationError(TopologyError):
    """The network could not be built, changed or measured."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class MininetMissing(EmulationError):
    """Mininet's Python package is not on this machine."""


class CommandFailed(EmulationError):
    """A command of the builder failed.

    Attributes:
        command: The command with its arguments.
        output: What it printed.
    """

    def __init__(self, command: Sequence[str], output: str) -> None:
        super().__init__(f"`{shlex.join(command)}` failed: {output.strip() or 'it gave no reason'}")
        self.command = tuple(command)
        self.output = output


class LinkNotFaithful(EmulationError):
    """A link would not be what was asked for, so it is not built.

    Attributes:
        link: Name of the link, or `all links`.
        backend: The backend that cannot serve it.
        reason: What it cannot do, and what to do about it.
    """

    def __init__(self, link: str, backend: str, reason: str) -> None:
        super().__init__(reason)
        self.link = link
        self.backend = backend

    def __str__(self) -> str:
        return f"{self.link} ({self.backend}): {self.reason}"
