"""What a live engine needs of a solver, and the solvers that start from scratch at each event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gomr.allocation import Allocation
from gomr.columns import DemandColumns
from gomr.problem import Demand, Edge, Problem
from gomr.solving import allocate


class LiveProblem:
    """A problem that changes.

    Attributes:
        network: The edges as they were at first, without demands: what changes not.
        capacity_bps: The capacity of each edge by id, whether it is down or not.
        down: Ids of the edges that carry nothing now.
    """

    def __init__(self, problem: Problem) -> None:
        """Start from a problem."""
        self.network = replace(problem, demands=())
        self._demands: dict[str, Demand] = {}
        self._columns: DemandColumns | None = None
        if isinstance(problem.demands, DemandColumns):
            self._columns = problem.demands
        else:
            self._demands = {demand.id: demand for demand in problem.demands}
        self.capacity_bps = {edge.id: edge.capacity_bps for edge in problem.edges}
        self.down: set[str] = set()
        self._made: Problem | None = problem
        self._present: Problem | None = None

    def copy(self) -> LiveProblem:
        """Return the same problem once more."""
        made = object.__new__(type(self))
        vars(made).update(
            vars(self),
            _demands=dict(self._demands),
            capacity_bps=dict(self.capacity_bps),
            down=set(self.down),
        )
        return made

    @property
    def demands(self) -> dict[str, Demand]:
        """The demands by id, in order of arrival; the caller may change them."""
        if self._columns is not None:
            self._demands, self._columns = {demand.id: demand for demand in self._columns}, None
        return self._demands

    def has_flows_of(self, demands: DemandColumns) -> bool:
        """Return whether all demands are those in the columns, but for their rates."""
        return self._columns is not None and self._columns.has_ends_of(demands)

    def take(self, demands: DemandColumns) -> None:
        """Take columns in place of all demands, which they are but for their rates."""
        self._columns = demands

    def usable_bps(self, edge_id: str) -> float:
        """Return what an edge can carry now."""
        return 0.0 if edge_id in self.down else self.capacity_bps[edge_id]

    def problem(self) -> Problem:
        """Return the problem as it is now."""
        if self._made is None:
            if self._present is None:
                edges = tuple(self._usable(edge) for edge in self.network.edges)
                self._present = replace(self.network, edges=edges)
            demands = tuple(self._demands.values()) if self._columns is None else self._columns
            self._made = self._present.asking(demands)
        return self._made

    def _usable(self, edge: Edge) -> Edge:
        usable_bps = self.usable_bps(edge.id)
        return edge if edge.capacity_bps == usable_bps else replace(edge, capacity_bps=usable_bps)

    def forget(self, *, edges: bool = False) -> None:
        """Rebuild the problem when it is next asked for: its demands have changed, or its edges too."""
        self._made = None
        if edges:
            self._present = None


class Session:
    """A solver that is told of events, each before the `LiveProblem` shows it or right after.

    An engine that solves the whole problem at each solve need not listen.

    Attributes:
        time_limit_s: Seconds that a solve may take; None for no limit.
    """

    time_limit_s: float | None

    def copy(self, problem: LiveProblem) -> Session:
        """Return the same session of a copy of its problem; what happens to one does not touch the other."""
        raise NotImplementedError

    def solve(self) -> Allocation:
        """Return the optimum of what it was told; its `wall_s` means nothing.

        Raises:
            SolverError: The engine failed.
        """
        raise NotImplementedError

    def add(self, demand: Demand) -> None:
        """Add a checked demand."""

    def remove(self, demand: Demand) -> None:
        """Let a demand go."""

    def rebind(self, before: Demand, demand: Demand) -> None:
        """Replace the demand of this id by one that comes last in order and has had its rates."""

    def resize(self, demand: Demand) -> None:
        """Take a demand's new rate."""

    def resize_all(self, demands: DemandColumns) -> bool:
        """Take new rates of all demands, those in the columns; False where that must go one by one."""
        del demands
        return True

    def set_capacity(self, edge_id: str, capacity_bps: float) -> None:
        """Take an edge's new capacity, 0 while it is down."""

    def start_from(self, rates: Mapping[str, Mapping[tuple[str, ...], float]]) -> None:
        """Take rates (by flow and path) for those that flows had before the next event."""

    def prices(self) -> Mapping[str, float]:
        """Return what each edge's last bit/s adds to the last value; {} if allocations have it."""
        return {}


class ColdSession(Session):
    """Solves from scratch at each event, within `time_limit_s` seconds."""

    def __init__(self, problem: LiveProblem, objective: str, engine: str, time_limit_s: float | None) -> None:
        """Solve `problem` as it is at each solve."""
        self._problem = problem
        self._objective = objective
        self._engine = engine
        self.time_limit_s = time_limit_s

    def copy(self, problem: LiveProblem) -> ColdSession:
        """Return the same session of a copy of its problem."""
        return ColdSession(problem, self._objective, self._engine, self.time_limit_s)

    def solve(self) -> Allocation:
        """Solve the problem as it is now."""
        return allocate(
            self._problem.problem(), self._objective, self._engine, time_limit_s=self.time_limit_s
        )
