"""Regular networks of equal links, where nearly every step of a simplex is degenerate, beside HiGHS.

They carry permutations, random pairs or one demand between each two nodes, up to many times what fits. Where
an objective is a linear programme of one stage, HiGHS solves it over edges by its dual simplex and by its
interior point, and the quicker one counts; the others are solved by column generation on HiGHS (`highs`).
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import networkx as nx

from benchmarks.gomr.source_program import by_highs
from gomr import OBJECTIVES, Allocation, Demand, Edge, Problem
from gomr.errors import SolverError
from gomr.solving import allocate

COUNT = 1000
QUICK = 24
BUDGET_S = 30.0
"""Seconds of wall time for each solve."""
MAX_TIMES_HIGHS = 10.0
MIN_S = 0.05
"""CPU time that nobody would notice, whatever HiGHS takes."""
EXACT = 1e-9
OBJECTIVE_TOLERANCE = 1e-6
"""What HiGHS' interior point is precise to."""
ONE_STAGE = ("max_throughput_min_delay", "fair")
"""Objectives with a linear programme of one stage."""
CAPACITY_BPS = 10.0


def fat_tree(ports: int) -> nx.Graph:
    """Return the switches of a fat-tree (M. Al-Fares et al., SIGCOMM 2008)."""
    graph, half = nx.Graph(), ports // 2
    for pod in range(ports):
        for upper in range(half):
            graph.add_edges_from(((pod, "aggregation", upper), (pod, "edge", lower)) for lower in range(half))
            graph.add_edges_from((("core", upper, core), (pod, "aggregation", upper)) for core in range(half))
    return graph


NETWORKS: dict[str, Callable[[random.Random], nx.Graph]] = {
    "fat-tree": lambda draw: fat_tree(draw.choice((4, 6, 8))),
    "grid": lambda draw: nx.grid_2d_graph(draw.randint(3, 9), draw.randint(3, 9)),
    "torus": lambda draw: nx.grid_2d_graph(draw.randint(3, 7), draw.randint(3, 7), periodic=True),
    "ring": lambda draw: nx.cycle_graph(draw.randint(5, 30)),
    "hypercube": lambda draw: nx.hypercube_graph(draw.randint(3, 5)),
    "clique": lambda draw: nx.complete_graph(draw.randint(5, 20)),
    "bipartite": lambda draw: nx.complete_bipartite_graph(draw.randint(2, 12), draw.randint(4, 12)),
    "circulant": lambda draw: nx.circulant_graph(draw.randint(12, 40), [1, 3, 5]),
    "regular": lambda draw: nx.random_regular_graph(4, 2 * draw.randint(5, 20), seed=draw.randrange(1 << 30)),
}


def problem_of(graph: nx.Graph, pairs: int, seed: int = 0) -> Problem:
    """Return unit demands between random nodes of a graph whose links are all alike."""
    names = {node: str(number) for number, node in enumerate(graph.nodes)}
    links = [(names[tail], names[head]) for tail, head in graph.edges]
    ends = [pair for tail, head in links for pair in ((tail, head), (head, tail))]
    edges = tuple(Edge(f"{tail}->{head}", tail, head, CAPACITY_BPS, 1e-3) for tail, head in ends)
    reverse = {f"{tail}->{head}": f"{head}->{tail}" for tail, head in ends}
    draw, nodes = random.Random(seed), list(names.values())
    drawn = [draw.sample(nodes, 2) for _ in range(pairs)]
    demands = tuple(Demand(f"f{number}", tail, head, 1.0) for number, (tail, head) in enumerate(drawn))
    return Problem(edges, demands, reverse)


def permutation(graph: nx.Graph, rate_bps: float) -> Problem:
    """Return demands from each node of such a graph to one other."""
    problem = problem_of(graph, 0)
    nodes = [str(number) for number in range(len(graph))]
    random.Random(1).shuffle(nodes)
    pairs = zip(nodes, nodes[1:] + nodes[:1], strict=True)
    demands = tuple(Demand(f"f{a}", a, b, rate_bps) for a, b in pairs)
    return replace(problem, demands=demands)


@dataclass(frozen=True)
class Instance:
    """A problem with the objective it is solved under."""

    name: str
    problem: Problem
    objective: str


@dataclass(frozen=True)
class Outcome:
    """CPU times of the process, and what is wrong with the answer; None where nothing is."""

    name: str
    native_s: float
    highs_s: float
    fault: str | None

    @property
    def times(self) -> float:
        """The time of `native` in that of HiGHS."""
        return max(self.native_s - MIN_S, 0.0) / self.highs_s


def instances(count: int, seed: int) -> Iterator[Instance]:
    """Yield the first `count` instances of a seed; each depends on its number alone."""
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        kind = list(NETWORKS)[number % len(NETWORKS)]
        empty = problem_of(NETWORKS[kind](draw), 0)
        nodes = sorted({edge.tail for edge in empty.edges})
        traffic = draw.choice(("permutation", "pairs", "all"))
        rate_bps = draw.choice((1.0, 4.0, 10.0, 40.0))
        if traffic == "permutation":
            draw.shuffle(nodes)
            pairs = list(zip(nodes, nodes[1:] + nodes[:1], strict=True))
        elif traffic == "pairs":
            pairs = [(a, b) for a, b in (draw.sample(nodes, 2) for _ in range(3 * len(nodes)))]
        else:
            pairs, rate_bps = list(itertools.permutations(nodes, 2)), rate_bps / len(nodes)
        demands = tuple(Demand(f"f{i}", a, b, rate_bps) for i, (a, b) in enumerate(pairs))
        objective = draw.choice(list(OBJECTIVES))
        name = f"{number}: {kind}, {len(nodes)} nodes, {traffic} at {rate_bps:.3g}, {objective}"
        yield Instance(name, Problem(empty.edges, demands, empty.reverse), objective)


def compare(instance: Instance, budget_s: float) -> Outcome:
    """Solve an instance by `native` and by HiGHS."""
    problem, objective = instance.problem, instance.objective
    native_s, found = _timed(problem, objective, "native", budget_s)
    if isinstance(found, str) or found.timed_out or found.gap > EXACT:
        fault: str | None = found if isinstance(found, str) else f"not solved: a gap of {found.gap:.1e}"
    else:
        fault = None
    if objective in ONE_STAGE:
        highs_s, optimum = by_highs(problem, OBJECTIVES[objective], budget_s)
        if isinstance(found, Allocation) and optimum is not None:
            fault = fault or _apart([found.value_bps], [optimum], OBJECTIVE_TOLERANCE)
        return Outcome(instance.name, native_s, highs_s, fault)
    highs_s, highs = _timed(problem, objective, "highs", budget_s)
    if isinstance(found, Allocation) and isinstance(highs, Allocation) and not highs.timed_out:
        fault = fault or _apart(_common(problem, found), _common(problem, highs), EXACT)
    return Outcome(instance.name, native_s, highs_s, fault)


def _timed(problem: Problem, objective: str, engine: str, budget_s: float) -> tuple[float, Allocation | str]:
    started = time.process_time()
    try:
        found: Allocation | str = allocate(problem, objective, engine, time_limit_s=budget_s)
    except SolverError as error:
        found = str(error)
    return time.process_time() - started, found


def _common(problem: Problem, found: Allocation) -> list[float]:
    """Return what all optima have in common: the first objective, under `max_min` every rate."""
    if found.objective == "max_min":
        return [found.rate_bps(demand.id) for demand in problem.demands]
    return [found.value_bps]


def _apart(ours: Sequence[float], theirs: Sequence[float], tolerance: float) -> str | None:
    for one, other in zip(ours, theirs, strict=True):
        if abs(one - other) > tolerance * max(one, other):
            return f"{one} where HiGHS has {other}"
    return None


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the totals, and each instance that is wrong or too slow."""
    slow = [one for one in outcomes if one.fault or one.times > MAX_TIMES_HIGHS]
    native_s, highs_s = (sum(getattr(one, field) for one in outcomes) for field in ("native_s", "highs_s"))
    lines = [
        "| instances | right | native, CPU time | HiGHS' best | most of native | over ten times HiGHS |",
        "|---|---|---|---|---|---|",
        f"| {len(outcomes)} | {sum(one.fault is None for one in outcomes)} | {native_s:.1f} s "
        f"| {highs_s:.1f} s "
        f"| {max(one.native_s for one in outcomes):.2f} s "
        f"| {sum(one.times > MAX_TIMES_HIGHS for one in outcomes)} |",
        "",
        *(
            f"- {one.name}: {one.native_s:.3g} s, HiGHS {one.highs_s:.3g} s; {one.fault or 'slow'}"
            for one in slow
        ),
    ]
    return "\n".join(lines) + "\n"


def main(count: int, seed: int, budget_s: float, out: Path) -> int:
    """Compare the instances and write the table; returns 1 where one is wrong or too slow."""
    outcomes = []
    for instance in instances(count, seed):
        outcomes.append(compare(instance, budget_s))
        one = outcomes[-1]
        print(f"{one.name}: {one.native_s:.3g} s, HiGHS {one.highs_s:.3g} s", file=sys.stderr, flush=True)
    text = table(outcomes)
    out.mkdir(parents=True, exist_ok=True)
    (out / "regular.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if all(one.fault is None and one.times <= MAX_TIMES_HIGHS for one in outcomes) else 1
