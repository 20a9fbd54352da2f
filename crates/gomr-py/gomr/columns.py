"""Demands and paths in arrays, for matrices of a million demands.

`DemandColumns` stands where a tuple of `Demand` does, and `PathTable` where a dict of paths does: both make
the objects only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gomr.errors import InvalidProblem

if TYPE_CHECKING:
    from gomr.problem import Demand

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.uint32]
Value = TypeVar("Value")
LARGEST_RATE = 1e100
"""Sums and products of larger numbers would not be finite."""


class DemandColumns(Sequence["Demand"]):
    """Plain demands (any paths, no acknowledgements, weight 1) as arrays; a sequence of `Demand`.

    Attributes:
        ids: The id of each demand, all different.
        nodes: Names of nodes, which the next two count.
        source: For each demand the place of its source in `nodes` (uint32).
        destination: The same of its destination.
        rate_bps: The wire rate that each asks for, bit/s (float64).
    """

    def __init__(
        self,
        ids: Sequence[str],
        nodes: Sequence[str],
        source: ArrayLike,
        destination: ArrayLike,
        rate_bps: ArrayLike,
    ) -> None:
        """Take the columns, all of the same length.

        Raises:
            InvalidProblem: They differ in length, a place is beyond the nodes, a rate is negative or not
                finite, or two demands have one id.
        """
        self.ids = ids
        self.nodes = tuple(nodes)
        self.source = _places("source", source, len(self.nodes))
        self.destination = _places("destination", destination, len(self.nodes))
        self.rate_bps: Floats = np.ascontiguousarray(rate_bps, dtype=np.float64)
        lengths = {len(ids), len(self.source), len(self.destination), len(self.rate_bps)}
        if len(lengths) > 1:
            raise InvalidProblem("demands", f"the columns have different lengths: {sorted(lengths)}")
        self._check_rates()
        if len(set(ids)) < len(ids):
            raise InvalidProblem("demands", "two of them have the same id; ids must be unique")

    @classmethod
    def from_matrix(cls, nodes: Sequence[str], rate_bps: ArrayLike) -> DemandColumns:
        """Return a demand for each rate above 0 of a matrix, called `source->destination`.

        Args:
            nodes: The names of the rows, and of the columns.
            rate_bps: The rate from each row's node to each column's, bit/s; the diagonal is left out.

        Raises:
            InvalidProblem: The matrix does not fit the nodes, or a rate is negative or not finite.
        """
        matrix = np.array(rate_bps, dtype=np.float64)
        if matrix.shape != (len(nodes), len(nodes)):
            reason = f"the matrix has the shape {matrix.shape}, and there are {len(nodes)} nodes"
            raise InvalidProblem("demands", reason)
        np.fill_diagonal(matrix, 0.0)
        source, destination = np.nonzero(matrix)
        pairs = zip(source.tolist(), destination.tolist(), strict=True)
        ids = [f"{nodes[tail]}->{nodes[head]}" for tail, head in pairs]
        return cls(ids, nodes, source, destination, matrix[source, destination])

    def has_ends_of(self, other: DemandColumns) -> bool:
        """Return whether both hold the same demands but for their rates."""
        if self.ids is other.ids and self.source is other.source and self.destination is other.destination:
            return True
        return (
            self.ids == other.ids
            and self.nodes == other.nodes
            and np.array_equal(self.source, other.source)
            and np.array_equal(self.destination, other.destination)
        )

    def _check_rates(self) -> None:
        wrong = np.flatnonzero(~((self.rate_bps >= 0) & (self.rate_bps <= LARGEST_RATE)))
        if len(wrong):
            first = int(wrong[0])
            reason = f"must be a number from 0 to {LARGEST_RATE:g}, not {self.rate_bps[first]}"
            raise InvalidProblem(f"demands[{self.ids[first]}].rate_bps", reason)

    def asking(self, rate_bps: ArrayLike) -> DemandColumns:
        """Return the same demands with other rates.

        Raises:
            InvalidProblem: There is not one for each, or one is negative or not finite.
        """
        made = object.__new__(type(self))
        vars(made).update(vars(self), rate_bps=np.ascontiguousarray(rate_bps, dtype=np.float64))
        if len(made.rate_bps) != len(self):
            raise InvalidProblem("demands", f"there are {len(self)}, and {len(made.rate_bps)} rates")
        made._check_rates()
        return made

    def scaled(self, factor: float) -> DemandColumns:
        """Return the demands with all rates multiplied."""
        return self.asking(self.rate_bps * factor)

    def routed(self) -> DemandColumns:
        """Return those that do not stay at their source."""
        leaves = np.flatnonzero(self.source != self.destination)
        if len(leaves) == len(self):
            return self
        ids = [self.ids[place] for place in leaves.tolist()]
        columns = self.source[leaves], self.destination[leaves], self.rate_bps[leaves]
        return DemandColumns(ids, self.nodes, *columns)

    def _with(self, part: slice, rate_bps: Floats) -> DemandColumns:
        ids = self.ids[part]
        return DemandColumns(ids, self.nodes, self.source[part], self.destination[part], rate_bps)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Demand: ...
    @overload
    def __getitem__(self, place: slice) -> DemandColumns: ...
    def __getitem__(self, place: int | slice) -> Demand | DemandColumns:
        """Return a demand, or several."""
        from gomr.problem import Demand

        if isinstance(place, slice):
            return self._with(place, self.rate_bps[place])
        ends = self.nodes[self.source[place]], self.nodes[self.destination[place]]
        return Demand(self.ids[place], *ends, float(self.rate_bps[place]))

    def __iter__(self) -> Iterator[Demand]:
        """Go through the demands."""
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Return whether another sequence has the same demands."""
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


def _places(field: str, places: ArrayLike, nodes: int) -> Indices:
    column = np.asarray(places)
    if len(column) and (int(column.min()) < 0 or int(column.max()) >= nodes):
        raise InvalidProblem(f"demands.{field}", f"counts beyond the {nodes} nodes")
    return np.ascontiguousarray(column, dtype=np.uint32)


class PathColumns:
    """Paths of all demands in arrays.

    Attributes:
        flow: The place of each path's demand; the paths of one are neighbours.
        rate_bps: The rate of each path.
        start: Where the edges of each path begin; one number more than there are paths.
        edges: The places of the edges of all paths, one after another.
    """

    def __init__(self, flow: bytes, rate_bps: bytes, start: bytes, edges: bytes) -> None:
        """Take the arrays as bytes: uint32, and float64 for the rates."""
        self.flow: Indices = np.frombuffer(flow, dtype=np.uint32)
        self.rate_bps: Floats = np.frombuffer(rate_bps, dtype=np.float64)
        self.start: Indices = np.frombuffer(start, dtype=np.uint32)
        self.edges: Indices = np.frombuffer(edges, dtype=np.uint32)

    def admitted_bps(self, flows: int) -> Floats:
        """Return the rate of each of this many demands."""
        admitted: Floats = np.zeros(flows)
        np.add.at(admitted, self.flow, self.rate_bps)
        return admitted

    def of(self, flow: int) -> list[tuple[list[int], float]]:
        """Return the paths of a demand, as places of edges, and the rate of each."""
        first, end = np.searchsorted(self.flow, [flow, flow + 1]).tolist()
        return [
            (self.edges[self.start[at] : self.start[at + 1]].tolist(), float(self.rate_bps[at]))
            for at in range(first, end)
        ]


class PathTable(Mapping[str, Value]):
    """Something for each demand, made when it is asked for and then kept."""

    def __init__(self, ids: Sequence[str], make: Callable[[int], Value]) -> None:
        """Take the demands' ids and what makes a demand's value of its place."""
        self._ids = ids
        self._make = make
        self._made: dict[str, Value] = {}

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._ids)}

    def __getitem__(self, name: str) -> Value:
        """Return what a demand has."""
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(self._place[name])
        return made

    def __iter__(self) -> Iterator[str]:
        """Go through the ids."""
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
