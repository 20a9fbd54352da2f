"""Demands in the forms in which programs hold traffic matrices: dicts, NumPy, pandas and SciPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from gomr.columns import DemandColumns, Floats
from gomr.errors import InvalidProblem
from gomr.problem import Demand

Matrix: TypeAlias = Mapping[Any, Any] | Any
"""Rates by pair of nodes, a dict of dicts, a square table (NumPy, pandas, SciPy; rows send), or tuples."""


def demands_of(
    demands: Iterable[Demand] | DemandColumns | Matrix, nodes: Sequence[str] | None = None
) -> DemandColumns | tuple[Demand, ...]:
    """Return demands for what a program holds; nodes are named by `str`.

    Args:
        demands: Demands as they are, or a matrix. In one that knows its nodes' names every pair is a demand;
            an array's zeros are none. The diagonal of a table is left out.
        nodes: Names of the rows and columns of an array; None where it must know them itself.

    Raises:
        InvalidProblem: It is none of these, does not fit the nodes, or holds what is no rate.
    """
    if isinstance(demands, DemandColumns):
        return demands
    if isinstance(demands, Mapping):
        return _of_mapping(demands)
    if hasattr(demands, "columns") and hasattr(demands, "index"):
        return _of_frame(demands)
    if hasattr(demands, "shape"):
        if nodes is None:
            reason = "an array has no names; use DemandColumns.from_matrix(nodes, array)"
            raise InvalidProblem("demands", reason)
        return DemandColumns.from_matrix(nodes, numbers_of(demands, "demands"))
    return _of_items(demands)


def _of_items(demands: object) -> tuple[Demand, ...]:
    known = (
        "Demand objects, tuples (source, destination, rate), DemandColumns, a dict of rates, a NumPy array, "
        "a DataFrame or a sparse matrix"
    )
    if isinstance(demands, str) or not isinstance(demands, Iterable):
        raise InvalidProblem("demands", f"must be {known}, not {type(demands).__name__}")
    made = []
    for demand in demands:
        if isinstance(demand, Demand):
            made.append(demand)
        elif isinstance(demand, tuple) and len(demand) == 3:
            made.append(_demand(*demand))
        else:
            raise InvalidProblem("demands", f"must be {known}; it holds {demand!r}")
    return tuple(made)


def _of_mapping(rates: Mapping[Any, Any]) -> tuple[Demand, ...]:
    made = []
    for key, value in rates.items():
        if isinstance(value, Mapping):
            made += [_demand(key, other, rate) for other, rate in value.items() if key != other]
        elif isinstance(key, tuple) and len(key) == 2:
            made.append(_demand(*key, value))
        else:
            raise InvalidProblem("demands", f"{key!r} is no pair of nodes; use (source, destination)")
    return tuple(made)


def _demand(source: object, destination: object, rate: Any) -> Demand:
    name = f"{source}->{destination}"
    try:
        return Demand(name, str(source), str(destination), float(rate))
    except (TypeError, ValueError):
        raise InvalidProblem(f"demands[{name}].rate_bps", f"must be a number, not {rate!r}") from None


def _of_frame(frame: Any) -> DemandColumns:
    rows, columns = [str(node) for node in frame.index], [str(node) for node in frame.columns]
    if sorted(rows) != sorted(columns) or len(set(rows)) < len(rows):
        raise InvalidProblem("demands", "the rows and columns of the table must be the same nodes, each once")
    place = {node: at for at, node in enumerate(columns)}
    numbers = numbers_of(frame.to_numpy(), "demands")
    return DemandColumns.from_matrix(rows, numbers[:, [place[node] for node in rows]])


def numbers_of(table: Any, field: str) -> Floats:
    """Return a dense table of numbers; InvalidProblem names the field where it holds anything else."""
    dense = table.toarray() if hasattr(table, "toarray") else table
    try:
        return np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidProblem(field, "the matrix holds what is no number") from None
