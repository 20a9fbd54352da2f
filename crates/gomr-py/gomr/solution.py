"""What `gomr.solve` returns: an allocation with its problem, in the forms in which programs go on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from gomr.allocation import Allocation, loads_of_allocation
from gomr.backups import Backup, backup_paths
from gomr.errors import InvalidProblem
from gomr.problem import Edge, Problem

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

Table = Literal["demands", "paths", "edges"]
_UNITS = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))


@dataclass(frozen=True)
class Certificate:
    """The proof of how good rates are; anyone who has the prices can compute it from them.

    Attributes:
        value_bps: The first objective: what is admitted, or under `fair` its utility.
        upper_bound_bps: No allocation has a larger value.
        gap: (bound - value) / bound; 0 is an optimum.
        max_violation_bps: By how much the worst edge or demand is over its limit; rounding at most.
    """

    value_bps: float
    upper_bound_bps: float
    gap: float
    max_violation_bps: float


@dataclass(frozen=True, repr=False)
class Solution(Allocation):
    """An allocation and the problem that it solves.

    Attributes:
        problem: The problem.
    """

    problem: Problem = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem, allocation: Allocation) -> Solution:
        """Return an allocation with its problem."""
        return cls(**vars(allocation), problem=problem)

    @cached_property
    def loads_bps(self) -> dict[str, float]:
        """What each edge carries, by its id, acknowledgements included."""
        return loads_of_allocation(self.problem, self)

    @cached_property
    def utilisation(self) -> dict[str, float]:
        """The share of its capacity that each edge carries, by its id; 0 for one without capacity."""
        return {edge.id: _share(self.loads_bps[edge.id], edge) for edge in self.problem.edges}

    def flows_bps(self, demand_id: str) -> dict[str, float]:
        """Return what a demand sends over each edge that it uses, by edge id."""
        flows: dict[str, float] = {}
        for path in self.paths[demand_id]:
            for edge_id in path.edges:
                flows[edge_id] = flows.get(edge_id, 0.0) + path.rate_bps
        return flows

    def worth_most(self, count: int = 10) -> list[tuple[Edge, float]]:
        """Return the edges where a unit of capacity is worth most, and its worth.

        The worth is the price of the certificate: what the first objective gains for each bit/s more, as long
        as the edge stays what limits it. Edges worth nothing are left out.
        """
        edges = self.problem.edges_by_id
        worth = sorted(self.prices.items(), key=lambda one: -one[1])
        return [(edges[edge_id], price) for edge_id, price in worth[:count] if price > 0]

    @property
    def certificate(self) -> Certificate:
        """The proof of how good it is."""
        return Certificate(self.value_bps, self.upper_bound_bps, self.gap, self.max_violation_bps)

    def backups(self) -> Iterator[Backup]:
        """Yield a backup for each path, in the order of the demands."""
        return backup_paths(self.problem, self)

    def to_pandas(self, table: Table = "paths") -> pd.DataFrame:
        """Return a pandas table.

        Args:
            table: `demands` (what each asked for and got), `paths` (each path in use) or `edges` (load,
                utilisation and price of each edge).

        Raises:
            InvalidProblem: There is no such table.
            ImportError: pandas is not installed.
        """
        import pandas

        rows = {"demands": self._demand_rows, "paths": self._path_rows, "edges": self._edge_rows}
        if table not in rows:
            raise InvalidProblem("table", f"{table!r} is not one of {', '.join(rows)}")
        return pandas.DataFrame(rows[table]())

    def to_networkx(self) -> nx.MultiDiGraph[Any]:
        """Return the network as a graph.

        Each edge has its id as key, and `capacity_bps`, `delay_s`, `load_bps`, `utilisation` and `price`.

        Raises:
            ImportError: networkx is not installed.
        """
        import networkx

        graph = networkx.MultiDiGraph()
        graph.add_nodes_from(sorted(self.problem.nodes))
        for row in self._edge_rows():
            graph.add_edge(row.pop("tail"), row.pop("head"), row.pop("edge"), **row)
        return graph

    def __repr__(self) -> str:
        unit, name = next(
            ((unit, name) for unit, name in _UNITS if self.requested_bps >= unit), (1.0, "bit/s")
        )
        share = self.admitted_bps / self.requested_bps if self.requested_bps > 0 else 1.0
        count = len(self.problem.demands)
        found = "best within the time" if self.timed_out else "optimal"
        return (
            f"<Solution {self.objective}: {self.admitted_bps / unit:.6g} of {self.requested_bps / unit:.6g} "
            f"{name} admitted ({share:.1%}), {count} {'demand' if count == 1 else 'demands'}, "
            f"fullest edge {self.max_utilisation:.1%}, {found}, gap {self.gap:.1g}, {self.wall_s:.3g} s>"
        )

    def _demand_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "demand": demand.id,
                "source": demand.source,
                "destination": demand.destination,
                "requested_bps": demand.rate_bps,
                "admitted_bps": self.rate_bps(demand.id),
                "paths": len(self.paths[demand.id]),
            }
            for demand in self.problem.demands
        ]

    def _path_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "demand": demand.id,
                "source": demand.source,
                "destination": demand.destination,
                "nodes": path.nodes,
                "rate_bps": path.rate_bps,
                "delay_s": path.delay_s,
            }
            for demand in self.problem.demands
            for path in self.paths[demand.id]
        ]

    def _edge_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "edge": edge.id,
                "tail": edge.tail,
                "head": edge.head,
                "capacity_bps": edge.capacity_bps,
                "delay_s": edge.delay_s,
                "load_bps": self.loads_bps[edge.id],
                "utilisation": self.utilisation[edge.id],
                "price": self.prices.get(edge.id, 0.0),
            }
            for edge in self.problem.edges
        ]


def _share(load_bps: float, edge: Edge) -> float:
    return load_bps / edge.capacity_bps if 0 < edge.capacity_bps < math.inf else 0.0


def solution_with(problem: Problem, allocation: Allocation, prices: Mapping[str, float]) -> Solution:
    """Return an allocation with its problem and prices that were found apart from it."""
    return Solution(**{**vars(allocation), "prices": prices}, problem=problem)
