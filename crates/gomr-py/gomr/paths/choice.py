"""Which paths demands with limits are bound to: mixed-integer programmes in HiGHS.

Over candidates, each path has a binary, and its rate is at most the binary times what the path can carry.
Over all paths, a demand becomes copies of one path each. A copy has a flow f and binaries z over the edges
that keep it to one path:

    z conserves one unit of flow and enters no node twice, f conserves flow, f_e <= z_e times the most of e

Limits on delays and on shared edges and nodes are rows over z, and the bound holds for all choices of paths.
Demands without limits are flows over edges, by source. The rates on the chosen paths come from an engine,
free of the integer solver's tolerances.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gomr.allocation import Rates, edges_loaded
from gomr.engines.linear_program import LinearProgram
from gomr.engines.time_budget import OutOfTime, TimeBudget
from gomr.errors import SolverError
from gomr.objectives import OBJECTIVES, Objective
from gomr.paths.finder import PathFinder
from gomr.paths.limits import Choice, first_within, is_limited, within_limits
from gomr.problem import Demand, Edge, Path, Problem

_SHORTEST_PATHS = 8
"""Shortest paths offered to a demand."""
_MAX_WIDTHS = 8
"""Widths over which a demand's disjoint paths are looked for."""
_MAX_BINARIES = 5_000
"""Binaries of a programme over all paths; with more, HiGHS proves little in minutes."""
_MAX_NODES = 50
"""Nodes of a search over all paths whose time has no limit."""
_ROUNDING = 3e-9
"""Share of a programme's value by which its bound is raised: the solver's tolerance."""
_DELAY_TOLERANCE = 1e-7
"""Share of the first objective that the least delay may cost: the integer solver's tolerance."""
_BINARY_THRESHOLD = 0.5
_COST_WEIGHT = 1e4
"""Of all costs: HiGHS's integer solver takes values for equal that differ by less than about 1e-7."""


@dataclass(frozen=True)
class SearchResult:
    """What a search over all paths found.

    Attributes:
        paths: The best choice met.
        bound_bps: No choice of paths within the limits has a larger value of the first objective.
        timed_out: Whether the time limit came first.
    """

    paths: Choice
    bound_bps: float
    timed_out: bool


def candidates_of(problem: Problem, rates: Rates) -> Choice:
    """Return paths for each limited demand: the given ones, or those of an optimum and likely others."""
    by_id = problem.edges_by_id

    @cache
    def over(width_bps: float) -> PathFinder:
        narrow = (replace(e, capacity_bps=0.0) if e.capacity_bps < width_bps else e for e in problem.edges)
        return PathFinder(replace(problem, edges=tuple(narrow), demands=()))

    def paths_of(demand: Demand) -> Iterator[Path]:
        if demand.fixed_paths is not None:
            yield from (tuple(by_id[edge_id] for edge_id in path) for path in demand.fixed_paths)
            return
        yield from (path for path, rate_bps in rates[demand.id] if rate_bps > 0)
        ends = demand.source, demand.destination
        yield from over(0.0).shortest(*ends, _SHORTEST_PATHS)
        for width_bps in _widths(problem, demand) if demand.disjoint is not None else ():
            most = demand.max_paths or len(problem.edges)
            yield from over(width_bps).disjoint(*ends, most, nodes=demand.disjoint == "nodes")

    return {
        demand.id: tuple(dict.fromkeys(path for path in paths_of(demand) if not demand.is_too_long(path)))
        for demand in filter(is_limited, problem.demands)
    }


def _widths(problem: Problem, demand: Demand) -> list[float]:
    """Return 0, and capacities up to the demand's rate with the least one beyond."""
    widths = sorted({edge.capacity_bps for edge in problem.edges if edge.capacity_bps > 0})
    useful = widths[1 : sum(width < demand.rate_bps for width in widths) + 1]
    return [0.0, *useful[:: max(1, -(-len(useful) // _MAX_WIDTHS))]]


def choices(
    problem: Problem, objective: Objective, candidates: Choice, time_limit_s: float | None
) -> Iterator[Choice]:
    """Yield the choice among candidates of the largest first objective, then that of the least delay too.

    Raises:
        SolverError: HiGHS failed or ran out of time.
    """
    if all(within_limits(d, candidates[d.id]) for d in problem.demands if is_limited(d)):
        yield candidates
        return
    model = _PathChoiceProgram(problem, objective, candidates, {}, time_limit_s)

    def chosen() -> Choice:
        # What gets nothing here may get something by another objective, within its limit too.
        used = model.chosen()
        return {
            d.id: used[d.id] or first_within(d, candidates[d.id]) for d in filter(is_limited, problem.demands)
        }

    model.maximise()
    yield chosen()
    try:
        model.minimise_delay()
    except OutOfTime:
        raise
    except SolverError:
        return  # the integer solver's tolerance may leave nothing that admits as much
    yield chosen()


def can_search(problem: Problem) -> bool:
    """Return whether a programme over all paths is small enough."""
    return len(problem.edges) * sum(_copies(problem).values()) <= _MAX_BINARIES


def search(
    problem: Problem, objective: Objective, candidates: Choice, time_limit_s: float | None
) -> SearchResult:
    """Look for the best choice among all paths, where `can_search`.

    Raises:
        SolverError: HiGHS failed.
    """
    model = _PathChoiceProgram(problem, objective, candidates, _copies(problem), time_limit_s)
    # Restarts took a fifth to a half of the time, and led to no other answer.
    model.program.set_option("mip_allow_restart", False)
    if time_limit_s is None:
        model.program.set_option("mip_max_nodes", _MAX_NODES)
    timed_out = False
    try:
        model.maximise()
    except OutOfTime:
        timed_out = True
    paths = model.chosen() if model.program.has_solution else {}
    return SearchResult(paths, model.bound_bps(), timed_out)


def _copies(problem: Problem) -> dict[str, int]:
    """Return how many paths each demand may use that has a limit and may take any path."""
    copies: dict[str, int] = {}
    for demand in problem.demands:
        if is_limited(demand) and demand.fixed_paths is None:
            most = math.inf if demand.max_paths is None else demand.max_paths
            if demand.disjoint is not None:
                most = min(most, sum(e.tail == demand.source for e in problem.edges))
                most = min(most, sum(e.head == demand.destination for e in problem.edges))
            copies[demand.id] = int(most)
    return copies


class _PathChoiceProgram:
    """A routing problem's programme, with rates in units of the problem's.

    Attributes:
        program: The programme.
    """

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        candidates: Choice,
        copies: Mapping[str, int],
        time_limit_s: float | None,
    ) -> None:
        budget = TimeBudget("highs", time_limit_s)
        budget.stage = "choice of paths"
        self.program = LinearProgram(budget)
        self._problem, self._unit_bps = problem, problem.unit_bps
        # The choice knows no levels: under `max_min` it is the one that is proportionally fair.
        self._worths = OBJECTIVES["fair"].worths if objective.by_level else objective.worths
        self._longest_s = max(edge.delay_s for edge in problem.edges)
        self._value: dict[int, float] = {}
        self._delay: dict[int, float] = {}
        self._candidates: dict[str, list[tuple[Path, int | None]]] = {}
        self._copies: list[tuple[Demand, list[list[tuple[Edge, int]]]]] = []
        self._capacity = {
            edge.id: self.program.row({}, upper=problem.useful_capacity_bps(edge) / self._unit_bps)
            for edge in problem.edges
        }
        free: dict[tuple[str, float, Demand | None], list[Demand]] = defaultdict(list)
        for demand in problem.demands:
            if demand.id in copies:
                self._add_copies(demand, copies[demand.id])
            elif demand.id in candidates:
                self._add_candidates(demand, candidates[demand.id])
            elif demand.fixed_paths is not None:
                edges = problem.edges_by_id
                paths = (tuple(edges[name] for name in path) for path in demand.fixed_paths)
                self._add_paths(demand, [path for path in paths if not demand.is_too_long(path)])
            else:
                own = demand if demand.max_delay_s is not None else None
                free[demand.source, demand.reverse_ack_ratio, own].append(demand)
        for demands in free.values():
            self._add_flow(demands)

    def maximise(self) -> None:
        """Maximise the first objective; OutOfTime at the end of the time."""
        self.program.minimise({part: -_COST_WEIGHT * worth for part, worth in self._value.items()})

    def minimise_delay(self) -> None:
        """Minimise the delay, with what was maximised kept to the solver's tolerance."""
        values = self.program.values()
        least = math.fsum(worth * float(values[part]) for part, worth in self._value.items())
        self.program.row(self._value, lower=least * (1 - _DELAY_TOLERANCE), upper=math.inf)
        self.program.minimise({rate: _COST_WEIGHT * cost for rate, cost in self._delay.items()})

    def bound_bps(self) -> float:
        """Return what the first objective cannot exceed."""
        return -self.program.bound * self._unit_bps / _COST_WEIGHT * (1 + _ROUNDING)

    def chosen(self) -> Choice:
        """Return the paths that limited demands may use in the last solution."""
        values = self.program.values()
        chosen = {
            name: tuple(path for path, used in own if used is None or values[used] > _BINARY_THRESHOLD)
            for name, own in self._candidates.items()
        }
        for demand, copies in self._copies:
            after = ({e.tail: e for e, used in own if values[used] > _BINARY_THRESHOLD} for own in copies)
            paths = (_follow(demand.source, edges) for edges in after)
            chosen[demand.id] = tuple(dict.fromkeys(path for path in paths if path))
        return chosen

    def _add_paths(self, demand: Demand, paths: Sequence[Path]) -> list[int]:
        """Add rates on paths, which carry what the demand gets; return the rates."""
        served = self._conserving()
        self._admit(demand, served)
        return [self._rate(demand, path, {served: 1.0}) for path in paths]

    def _add_candidates(self, demand: Demand, paths: Sequence[Path]) -> None:
        """Add rates on paths of which the demand may use some."""
        rates = self._add_paths(demand, paths)
        if within_limits(demand, paths):
            self._candidates[demand.id] = [(path, None) for path in paths]
            return
        every = list(self.program.binaries(len(paths)))
        self._candidates[demand.id] = list(zip(paths, every, strict=True))
        for path, rate, used in zip(paths, rates, every, strict=True):
            self._bound(demand, path, rate, used)
        if demand.max_paths is not None:
            self.program.row(dict.fromkeys(every, 1.0), upper=demand.max_paths)
        self._keep_apart(demand, zip(paths, every, strict=True))

    def _add_copies(self, demand: Demand, count: int) -> None:
        """Add a demand that may use as many paths, whichever they are."""
        edges = [
            edge for edge in self._problem.edges if self._may_use(edge, demand.source, demand.destination)
        ]
        served = self._conserving()
        self._admit(demand, served)
        copies = [self._add_copy(demand, edges, served) for _ in range(count)]
        self._copies.append((demand, copies))
        self._keep_apart(demand, (((edge,), used) for own in copies for edge, used in own))

    def _add_copy(self, demand: Demand, edges: Sequence[Edge], served: int) -> list[tuple[Edge, int]]:
        own = list(zip(edges, self.program.binaries(len(edges)), strict=True))
        ends = {demand.source: {}, demand.destination: {served: 1.0}}
        at: dict[str, int] = defaultdict(self._conserving)
        entering: dict[str, dict[int, float]] = defaultdict(dict)
        balance: dict[str, dict[int, float]] = defaultdict(dict)
        for edge, used in own:
            into = ends[edge.head] if edge.head in ends else {at[edge.head]: 1.0}
            out_of = {} if edge.tail in ends else {at[edge.tail]: -1.0}
            self._bound(demand, (edge,), self._rate(demand, (edge,), {**into, **out_of}), used)
            entering[edge.head][used] = balance[edge.head][used] = 1.0
            balance[edge.tail][used] = -1.0
        for node, terms in balance.items():
            if node not in ends:
                self.program.row(terms, lower=0.0, upper=0.0)
            self.program.row(entering[node], upper=1.0)
        if demand.max_delay_s is not None and self._longest_s > 0:
            delays = {used: edge.delay_s / self._longest_s for edge, used in own}
            self.program.row(delays, upper=demand.delay_limit_s / self._longest_s)
        return own

    def _add_flow(self, demands: Sequence[Demand]) -> None:
        """Add the flow over edges of demands of one source without limits; with a delay limit, of one alone.

        The limit holds for the mean delay of its paths: what is found can be more than the engine finds.
        """
        source = demands[0].source
        at: dict[str, int] = defaultdict(self._conserving)
        delays: dict[int, float] = {}
        for edge in self._problem.edges:
            if self._may_use(edge, source, None):
                out_of = {} if edge.tail == source else {at[edge.tail]: -1.0}
                rate = self._rate(demands[0], (edge,), {at[edge.head]: 1.0, **out_of})
                delays[rate] = edge.delay_s
        for demand in demands:
            parts = self._admit(demand, at[demand.destination])
            if demand.max_delay_s is not None and self._longest_s > 0:
                terms = {**delays, **dict.fromkeys(parts, -demand.delay_limit_s)}
                self.program.row({at: delay / self._longest_s for at, delay in terms.items()}, upper=0.0)

    def _may_use(self, edge: Edge, source: str, destination: str | None) -> bool:
        """Return whether a path between these ends (None: any destination) may use an edge."""
        ends = self._problem.endpoints
        return (
            edge.capacity_bps > 0
            and edge.head != source
            and edge.tail != destination
            and (edge.tail == source or edge.tail not in ends)
            and (destination in (None, edge.head) or edge.head not in ends)
        )

    def _conserving(self) -> int:
        return self.program.row({}, lower=0.0, upper=0.0)

    def _admit(self, demand: Demand, arriving: int) -> list[int]:
        """Add what a demand gets of what arrives; return its parts."""
        acks = {self._capacity[edge_id]: demand.ack_ratio for edge_id in demand.ack_edges or ()}
        parts = []
        for worth, rate_bps in self._worths(demand):
            (part,) = self.program.columns([0.0], [{arriving: -1.0, **acks}])
            self.program.bound_variable(part, 0.0, rate_bps / self._unit_bps)
            self._value[part] = worth
            parts.append(part)
        return parts

    def _rate(self, demand: Demand, path: Path, entry: dict[int, float]) -> int:
        """Add the rate of a demand on a path or an edge, which loads edges and enters these rows."""
        for edge_id, load in edges_loaded(self._problem, demand.reverse_ack_ratio, path):
            row = self._capacity[edge_id]
            entry[row] = entry.get(row, 0.0) + load
        (rate,) = self.program.columns([0.0], [entry])
        delay_s = math.fsum(edge.delay_s for edge in path)
        self._delay[rate] = delay_s / self._longest_s if self._longest_s > 0 else float(len(path))
        return rate

    def _bound(self, demand: Demand, path: Path, rate: int, used: int) -> None:
        """Hold a rate to what the path can carry, and to 0 where the path is not used."""
        widths = [min(demand.rate_bps, edge.capacity_bps) for edge in path]
        if demand.reverse_ack_ratio > 0 and self._problem.reverse is not None:
            back = (self._problem.edges_by_id[self._problem.reverse[edge.id]] for edge in path)
            widths += [edge.capacity_bps / demand.reverse_ack_ratio for edge in back]
        self.program.row({rate: 1.0, used: -min(widths) / self._unit_bps}, upper=0.0)

    def _keep_apart(self, demand: Demand, used: Iterable[tuple[Path, int]]) -> None:
        """Keep paths of a demand (or edges of its copies) disjoint where it asks for it."""
        sharing: dict[str, dict[int, float]] = defaultdict(dict)
        for path, binary in used if demand.disjoint is not None else ():
            between = [f"node {edge.head}" for edge in path if edge.head != demand.destination]
            for part in (
                *(f"edge {edge.id}" for edge in path),
                *(between if demand.disjoint == "nodes" else ()),
            ):
                sharing[part][binary] = 1.0
        for terms in sharing.values():
            self.program.row(terms, upper=1.0)


def _follow(node: str, after: Mapping[str, Edge]) -> Path:
    """Return the path from a node along the edge after each."""
    path = []
    while node in after:
        path.append(after[node])
        node = path[-1].head
    return tuple(path)
