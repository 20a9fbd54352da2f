"""The optimum of each objective, kept from event to event.

Each solve says how flows and links are now; what differs from the solve before is one event of a live engine,
which goes on from its last basis. So nothing has to be taken back where a flow is refused after all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gomr import OBJECTIVES, Allocation, Demand, Edge, Engine, Problem
from gomr.errors import InvalidProblem, SolverError

from controller.state.live_network import LiveNetwork, arc_name

"""Objectives that leave little to choose: the end of minimum reallocation is that no flow is starved for
another of equal worth, and these see to that."""


class LiveOptima:
    """A live engine for each objective that flows have.

    What a solve has found after `time_limit_s` is the answer. `solved` is called after each with the
    objective and the seconds that it took; `solves` counts them.
    """

    def __init__(
        self,
        network: LiveNetwork,
        time_limit_s: float | None = None,
        solved: Callable[[str, float], None] = lambda *_: None,
    ) -> None:
        self._network = network
        self._solved = solved
        self.time_limit_s = time_limit_s
        self.solves = 0
        self._delays_version = network.delays_version
        self._engines: dict[str, Engine] = {}

    def copies(self) -> dict[str, Engine]:
        """Return a copy of the last optimum of each objective, with all by which the next one is found."""
        return {objective: engine.copy() for objective, engine in self._engines.items()}

    def go_on_from(self, engines: Mapping[str, Engine]) -> None:
        """Find the next optima from those of another network that is the same."""
        self._engines = {objective: engine.copy() for objective, engine in engines.items()}

    def solve(
        self, objective: str, demands: Sequence[Demand], capacity_bps: Mapping[str, float]
    ) -> Allocation:
        """Return the optimum; unless fairness decides, one of those that move no flow without need.

        Nothing may be taken of an arc that `capacity_bps` does not name.

        Raises:
            SolverError: The solver failed, from its last basis and from scratch.
        """
        self.solves += 1
        capacities = {name: capacity_bps.get(name, 0.0) for name in self._network.arcs}
        if self._delays_version != self._network.delays_version:
            self._engines, self._delays_version = {}, self._network.delays_version
        engine = self._engines.pop(objective, None)
        if engine is not None:
            engine.time_limit_s = self.time_limit_s
            try:
                allocation = engine.become(demands, capacities).allocation
            except (InvalidProblem, SolverError):
                engine = None  # Its state may be what fails.
        if engine is None:
            problem, min_reallocation = self._problem(demands, capacities), not OBJECTIVES[objective].is_fair
            engine = Engine(
                problem,
                objective=objective,
                min_reallocation=min_reallocation,
                time_limit_s=self.time_limit_s,
            )
            allocation = engine.allocation
        self._engines[objective] = engine
        self._solved(objective, allocation.wall_s)
        return allocation

    def _problem(self, demands: Sequence[Demand], capacity_bps: Mapping[str, float]) -> Problem:
        edges = tuple(
            Edge(name, arc.tail, arc.head, capacity_bps[name], arc.delay_s)
            for name, arc in self._network.arcs.items()
        )
        reverse = {edge.id: arc_name(edge.head, edge.tail) for edge in edges}
        nodes = {node for edge in edges for node in (edge.tail, edge.head)}
        hosts = frozenset(node for node in nodes if self._network.is_host(node))
        return Problem(edges, tuple(demands), reverse, hosts)
