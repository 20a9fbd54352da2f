"""Obviously right and slow counterparts of the engine, and random problems to compare them on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import highspy
from gomr import Allocation, Demand, Edge, PathRate, Problem
from gomr.problem import Path
from hypothesis import strategies as st

EdgePath = tuple[str, ...]
multiples = st.one_of(st.integers(0, 12).map(float), st.floats(0.01, 12.0))
"""Of a unit of rates: zero, ties and anything between."""


def simple_paths(problem: Problem, demand: Demand) -> list[EdgePath]:
    """Every path of a demand that visits no node twice, by depth-first search."""
    if demand.fixed_paths is not None:
        return list(demand.fixed_paths)

    def extend(node: str, path: EdgePath, visited: frozenset[str]) -> Iterator[EdgePath]:
        if node == demand.destination:
            yield path
        elif node == demand.source or node not in problem.endpoints:
            for edge in problem.edges:
                if edge.tail == node and edge.head not in visited:
                    yield from extend(edge.head, (*path, edge.id), visited | {edge.head})

    return list(extend(demand.source, (), frozenset({demand.source})))


def edge_paths(problem: Problem, demand: Demand) -> list[Path]:
    """Every such path, as edges, that keeps the demand's limit on delay."""
    by_id = problem.edges_by_id
    every = (tuple(by_id[name] for name in path) for path in simple_paths(problem, demand))
    return [path for path in every if not demand.is_too_long(path)]


@dataclass
class PathProgram:
    """A path-form linear programme handed to HiGHS directly, rates in units of `unit_bps`."""

    problem: Problem
    paths: Mapping[str, Sequence[EdgePath]]
    unit_bps: float

    def __post_init__(self) -> None:
        self.columns = [(demand, path) for demand in self.problem.demands for path in self.paths[demand.id]]
        self.delays = {edge.id: edge.delay_s for edge in self.problem.edges}
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self.solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
        for _ in self.columns:
            self.solver.addVar(0.0, highspy.kHighsInf)
        for edge in self.problem.edges:
            self.limit({i: self.load(i, edge.id) for i in range(len(self.columns))}, edge.capacity_bps)
        for demand in self.problem.demands:
            self.limit(dict.fromkeys(self.columns_of(demand), 1.0), demand.rate_bps)

    def columns_of(self, demand: Demand) -> list[int]:
        return [i for i, (owner, _) in enumerate(self.columns) if owner is demand]

    def load(self, column: int, edge_id: str) -> float:
        demand, path = self.columns[column]
        reverse = self.problem.reverse or {}
        if demand.ack_edges is not None:
            return (edge_id in path) + demand.ack_ratio * (edge_id in demand.ack_edges)
        acks = sum(demand.ack_ratio for used in path if demand.ack_ratio and reverse[used] == edge_id)
        return (edge_id in path) + acks

    def limit(self, factors: Mapping[int, float], upper_bps: float, lower_bps: float = -math.inf) -> None:
        used = {column: factor for column, factor in factors.items() if factor}
        upper, lower = upper_bps / self.unit_bps, lower_bps / self.unit_bps
        self.solver.addRow(lower, upper, len(used), list(used), list(used.values()))

    def minimise(self, costs: Mapping[int, float]) -> float:
        least = self.minimise_if_feasible(costs)
        assert least is not None
        return least

    def minimise_if_feasible(self, costs: Mapping[int, float]) -> float | None:
        if not costs:
            return 0.0
        for column in range(self.solver.getNumCol()):
            self.solver.changeColCost(column, costs.get(column, 0.0))
        self.solver.run()
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal
        return float(self.solver.getInfo().objective_function_value) * self.unit_bps


def largest_throughput(program: PathProgram) -> float:
    """The most that a programme's paths carry, bit/s."""
    return -program.minimise(dict.fromkeys(range(len(program.columns)), -1.0))


def optimum(problem: Problem, paths: Mapping[str, Sequence[EdgePath]]) -> tuple[float, float]:
    """The largest throughput over the given paths in bit/s, and the least sum of delay times rate at it."""
    program = PathProgram(problem, paths, unit_of(problem))
    everything = range(len(program.columns))
    admitted_bps = largest_throughput(program)
    program.limit(dict.fromkeys(everything, 1.0), math.inf, admitted_bps * (1 - 1e-9))
    delays = {i: sum(program.delays[edge] for edge in program.columns[i][1]) for i in everything}
    longest = max(delays.values(), default=0.0) or 1.0
    return admitted_bps, program.minimise({i: delay / longest for i, delay in delays.items()}) * longest


def unlimited_optimum(problem: Problem) -> tuple[float, float]:
    """`optimum` over all paths there are."""
    return optimum(problem, {demand.id: simple_paths(problem, demand) for demand in problem.demands})


def limited_optimum(problem: Problem) -> tuple[float, float]:
    """`optimum` with at most `max_paths` paths a demand, by trying every set of paths."""
    sets = []
    for demand in problem.demands:
        paths = simple_paths(problem, demand)
        count = len(paths) if demand.max_paths is None else min(len(paths), demand.max_paths)
        sets.append(list(itertools.combinations(paths, count)))
    ids = [demand.id for demand in problem.demands]
    results = [optimum(problem, dict(zip(ids, choice, strict=True))) for choice in itertools.product(*sets)]
    best_bps = max(admitted for admitted, _ in results)
    return best_bps, min(cost for admitted, cost in results if admitted >= best_bps * (1 - 1e-7))


def least_largest_rates(problem: Problem, allocation: Allocation) -> float:
    """The least sum of the demands' largest path rates over the paths and with the rates they have."""
    used = {name: [path.edges for path in paths] for name, paths in allocation.paths.items()}
    program = PathProgram(problem, used, unit_of(problem))
    costs = {}
    for demand in problem.demands:
        columns = program.columns_of(demand)
        rate_bps = allocation.rate_bps(demand.id)
        program.limit(dict.fromkeys(columns, 1.0), math.inf, rate_bps * (1 - 1e-9))
        largest = program.solver.getNumCol()
        program.solver.addVar(0.0, highspy.kHighsInf)
        costs[largest] = 1.0
        for column in columns:
            program.limit({column: 1.0, largest: -1.0}, 0.0)
    return program.minimise(costs)


def unit_of(problem: Problem) -> float:
    """A unit of rates that keeps the numbers around 1."""
    requested = sum(demand.rate_bps for demand in problem.demands)
    return min(requested, max(edge.capacity_bps for edge in problem.edges)) or 1.0


def check_allocation(problem: Problem, allocation: Allocation) -> None:
    """Assert everything that must hold of any allocation, from the definitions."""
    edges = {edge.id: edge for edge in problem.edges}
    tolerance = 1e-9 * max(edge.capacity_bps for edge in problem.edges)
    loads = dict.fromkeys(edges, 0.0)
    assert list(allocation.paths) == [demand.id for demand in problem.demands]
    for demand in problem.demands:
        paths = allocation.paths[demand.id]
        assert len({path.edges for path in paths}) == len(paths)
        assert demand.max_paths is None or len(paths) <= demand.max_paths
        assert sum(path.rate_bps for path in paths) <= demand.rate_bps + tolerance
        for path in paths:
            assert demand.fixed_paths is None or path.edges in demand.fixed_paths
            check_path(problem, demand, path)
            for edge_id in path.edges:
                loads[edge_id] += path.rate_bps
                if demand.ack_ratio and demand.ack_edges is None:
                    assert problem.reverse is not None
                    loads[problem.reverse[edge_id]] += demand.ack_ratio * path.rate_bps
            for edge_id in demand.ack_edges or ():
                loads[edge_id] += demand.ack_ratio * path.rate_bps
    assert all(load <= edges[edge_id].capacity_bps + tolerance for edge_id, load in loads.items())
    assert 0 <= allocation.max_violation_bps <= tolerance
    every = [path for paths in allocation.paths.values() for path in paths]
    assert math.isclose(allocation.admitted_bps, sum(path.rate_bps for path in every), abs_tol=1e-300)
    assert math.isclose(allocation.cost_bps_s, sum(p.rate_bps * p.delay_s for p in every), abs_tol=1e-300)
    assert math.isclose(
        allocation.requested_bps, sum(demand.rate_bps for demand in problem.demands), abs_tol=1e-300
    )


def check_path(problem: Problem, demand: Demand, path: PathRate) -> None:
    """Assert that a path leads from source to destination, visits no node twice and crosses no endpoint."""
    edges = [next(edge for edge in problem.edges if edge.id == name) for name in path.edges]
    assert path.rate_bps > 0
    assert path.nodes[0] == demand.source
    assert path.nodes[-1] == demand.destination
    assert [(edge.tail, edge.head) for edge in edges] == list(itertools.pairwise(path.nodes))
    assert len(set(path.nodes)) == len(path.nodes)
    assert not problem.endpoints.intersection(path.nodes[1:-1])
    assert math.isclose(path.delay_s, sum(edge.delay_s for edge in edges), abs_tol=1e-12)


@st.composite
def problems(draw: st.DrawFn, *, most_nodes: int = 5, most_demands: int = 4, acks: bool = True) -> Problem:
    """Random problems: parallel edges, zero capacities, unreachable pairs, ties, any magnitude of rates."""
    unit_bps = draw(st.sampled_from([1.0, 64e3, 1e6, 9.7e8, 1e12]))
    nodes = [f"n{i}" for i in range(draw(st.integers(2, most_nodes)))]
    rate = multiples.map(lambda multiple: multiple * unit_bps)
    delay = st.one_of(st.integers(0, 5).map(lambda ms: ms * 1e-3), st.floats(0.0, 0.1))
    pairs = st.lists(st.sampled_from(nodes), min_size=2, max_size=2, unique=True)
    edges = []
    reverse: dict[str, str] = {}
    for index, (a, b) in enumerate(draw(st.lists(pairs, min_size=1, max_size=8))):
        one_way = draw(delay)
        edges.append(Edge(f"e{index}", a, b, draw(rate), one_way))
        edges.append(Edge(f"e{index}r", b, a, draw(rate), one_way))
        reverse |= {f"e{index}": f"e{index}r", f"e{index}r": f"e{index}"}
    known = sorted({edge.tail for edge in edges})
    ends = st.lists(st.sampled_from(known), min_size=2, max_size=2, unique=True)
    ack_ratio = st.sampled_from([0.0, 0.0458]) if acks else st.just(0.0)
    demands = tuple(
        Demand(f"d{index}", source, destination, draw(rate), ack_ratio=draw(ack_ratio))
        for index, (source, destination) in enumerate(draw(st.lists(ends, max_size=most_demands)))
    )
    endpoints = frozenset(draw(st.lists(st.sampled_from(known), max_size=2)))
    return Problem(tuple(edges), demands, reverse, endpoints)


@st.composite
def with_own_ack_path(draw: st.DrawFn, problem: Problem, demand: Demand) -> Demand:
    """The demand as it is, or with acknowledgements on some way back of their own."""
    back = replace(demand, source=demand.destination, destination=demand.source)
    return replace(demand, ack_edges=draw(st.none() | st.sampled_from([None, *simple_paths(problem, back)])))


@st.composite
def problems_with_fixed_paths(draw: st.DrawFn) -> Problem:
    """Random problems in which some demands run already, over some of the paths there are."""
    problem = draw(problems())
    demands = []
    for demand in problem.demands:
        demand = draw(with_own_ack_path(problem, demand))
        paths = simple_paths(problem, demand)
        runs = draw(st.booleans())
        if paths and runs:
            kept = draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3, unique=True))
            demands.append(replace(demand, fixed_paths=tuple(kept)))
        else:
            demands.append(demand)
    return replace(problem, demands=tuple(demands))


@st.composite
def problems_with_path_limits(draw: st.DrawFn) -> Problem:
    """Small random problems in which some demands have a limit of paths."""
    problem = draw(problems(most_nodes=4, most_demands=2))
    limits = st.sampled_from([None, 1, 2])
    demands = tuple(replace(demand, max_paths=draw(limits)) for demand in problem.demands)
    return replace(problem, demands=demands)


def two_way(*links: tuple[str, str, float, float]) -> tuple[tuple[Edge, ...], dict[str, str]]:
    """Edges both ways of links (end, other end, capacity in bit/s, delay in s), and their reverse edges."""
    edges = []
    reverse = {}
    for a, b, capacity_bps, delay_s in links:
        for tail, head in ((a, b), (b, a)):
            edges.append(Edge(f"{tail}->{head}", tail, head, capacity_bps, delay_s))
            reverse[f"{tail}->{head}"] = f"{head}->{tail}"
    return tuple(edges), reverse


def rates(allocation: Allocation, demand_id: str) -> dict[str, float]:
    """Rates in bit/s by path, a path as its nodes joined by hyphens."""
    return {"-".join(path.nodes): path.rate_bps for path in allocation.paths[demand_id]}
