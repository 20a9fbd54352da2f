"""What the readers of all formats of demands are told, and what they return."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from gomr import Demand, DemandColumns
from gomr.errors import InvalidProblem
from gomr.problem import check_own_fields
from numpy.typing import NDArray

from experiments.errors import ScenarioError
from topologies.routable import NodeNames, UnknownNode
from topologies.units import UnitError, parse_rate_bps

MAX_BPS = 1e18
"""A larger rate is a mistake: all the world's links together carry less."""
NO_UNIT = "rates without a unit are read as bit/s (--rate-unit says otherwise)"


@dataclass(frozen=True)
class Context:
    """What a file of demands is read for: what it may call the nodes, and where flows may begin and end.

    Numbers without a unit count in `rate_unit_bps` if the caller says so; where the network comes from they
    count in `network_unit_bps`. If the rates are scaled they only count relative to each other.
    `matrix` counts from 1 in files of several.
    """

    nodes: NodeNames
    ends: tuple[str, ...]
    rate_unit_bps: float | None = None
    network_unit_bps: float | None = None
    is_scaled: bool = False
    matrix: int = 1

    def end(self, text: str, file: str, place: str) -> str:
        """Return the node that a file calls so (ScenarioError: none, several, or none where flows end)."""
        try:
            name = self.nodes.resolve(text)
        except UnknownNode as error:
            if "may be any of" in str(error):
                raise ScenarioError(file, place, str(error)) from None
            name = ""
        if name not in self._allowed:
            near = difflib.get_close_matches(text, self.ends, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ScenarioError(file, place, f"flows cannot begin or end at {text!r}{hint}")
        return name

    def end_of_key(self, key: str, file: str, place: str) -> str:
        """Return the node of a key in the network's file, for formats that number nodes; else as `end`."""
        return self.nodes.keys.get(key) or self.end(key, file, place)

    @cached_property
    def _allowed(self) -> frozenset[str]:
        return frozenset(self.ends)

    def bare_unit_bps(self, file: str) -> float:
        """Return what numbers without a unit count in, in a file that cannot say.

        Raises:
            ScenarioError: The network has a unit of its own, so that they may count in that or in bit/s.
        """
        if self.rate_unit_bps is not None:
            return self.rate_unit_bps
        if self.network_unit_bps not in (None, 1.0) and not self.is_scaled:
            reason = (
                f"its rates have no unit, and those of the network count in {self.network_unit_bps:g} bit/s: "
                "say what these count in by --rate-unit, or scale them by --load"
            )
            raise ScenarioError(file, "", reason)
        return 1.0

    def unit_notes(self) -> tuple[str, ...]:
        """Return the note on numbers that were read without a unit."""
        return () if self.is_scaled or self.rate_unit_bps is not None else (NO_UNIT,)


@dataclass(frozen=True)
class ReadDemands:
    """The demands of a file, and sentences on what was assumed or left out."""

    demands: Sequence[Demand]
    notes: tuple[str, ...] = ()


class DemandFormat(Protocol):
    """A format of files of demands: a module of this package."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """What people call it."""

    def recognises(self, path: Path, content: bytes) -> bool:
        """Return whether a file is in this format."""

    def read(self, file: str, content: bytes, context: Context) -> ReadDemands:
        """Return the demands of a file (ScenarioError: it cannot be used; the text names the place)."""


def rate_of(value: object, unit_bps: float, file: str, place: str) -> float:
    """Return a rate in bit/s (ScenarioError: it is not one that a flow can ask for)."""
    try:
        rate_bps = parse_rate_bps(value, unit_bps)
    except UnitError as error:
        raise ScenarioError(file, place, str(error)) from None
    if not rate_bps >= 0:
        raise ScenarioError(file, place, f"must be a finite number of at least 0, not {value}")
    if rate_bps > MAX_BPS:
        raise ScenarioError(file, place, f"{rate_bps:g} bit/s is beyond {MAX_BPS:g}: check the unit")
    return rate_bps


def checked(demand: Demand, file: str, place: str) -> Demand:
    """Return a demand whose own fields make sense (ScenarioError: one does not)."""
    try:
        check_own_fields("", demand)
    except InvalidProblem as error:
        raise ScenarioError(file, place, f"{error.field.lstrip('.')}: {error.reason}") from None
    return demand


def unique(demands: Sequence[Demand], file: str, places: Sequence[str]) -> tuple[Demand, ...]:
    """Return demands of which no two have one id (ScenarioError: there are none, or two have one id)."""
    seen: set[str] = set()
    for demand, place in zip(demands, places, strict=True):
        if demand.id in seen:
            raise ScenarioError(file, place, f"there is already a flow {demand.id!r}")
        seen.add(demand.id)
    if not demands:
        raise ScenarioError(file, "", "holds no flow; give one a line")
    return tuple(demands)


def of_matrix(
    matrix: NDArray[np.float64], names: Sequence[str], unit_bps: float, file: str, notes: tuple[str, ...] = ()
) -> ReadDemands:
    """Return a demand `a->b` for each entry of a matrix above 0: row i column j is from node i to node j.

    Raises:
        ScenarioError: It is not square, or an entry is negative, not finite or absurd.
    """
    _check_matrix(matrix, len(names), unit_bps, file)
    off_diagonal = matrix * unit_bps
    on_diagonal = int(np.count_nonzero(np.diagonal(off_diagonal)))
    np.fill_diagonal(off_diagonal, 0.0)
    demands = DemandColumns.from_matrix(names, off_diagonal)
    if not len(demands):
        raise ScenarioError(file, "", "asks for nothing between two nodes: all entries are 0")
    empty = len(names) * (len(names) - 1) - len(demands)
    if empty:
        notes += (f"{empty} entries of 0 are no demands",)
    if on_diagonal:
        notes += (f"{on_diagonal} entries from a node to itself are left out",)
    return ReadDemands(demands, notes)


def _check_matrix(matrix: NDArray[np.float64], count: int, unit_bps: float, file: str) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(map(str, matrix.shape)) or "a single number"
        raise ScenarioError(file, "", f"a traffic matrix is square: a row and a column a node, not {shape}")
    if matrix.shape[0] != count:
        raise ScenarioError(file, "", f"the matrix has {matrix.shape[0]} rows, but there are {count} nodes")
    wrong = ~((matrix >= 0) & (matrix <= MAX_BPS / unit_bps))
    if wrong.any():
        row, column = map(int, np.argwhere(wrong)[0])
        reason = f"{matrix[row, column]:g} is no rate: it has to be from 0 to {MAX_BPS:g} bit/s"
        raise ScenarioError(file, f"row {row + 1}, column {column + 1}", reason)


def order_of(count: int, context: Context, file: str) -> tuple[str, ...]:
    """Return the nodes of rows and columns without names (ScenarioError: another number, or several ways)."""
    try:
        return context.nodes.in_order(count, context.ends)
    except UnknownNode as error:
        raise ScenarioError(file, "", str(error)) from None
