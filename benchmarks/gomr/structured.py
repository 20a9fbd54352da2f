"""Networks of equal links and equal delays: grids, tori, rings, leaf-spines and fat-trees.

Nearly every pivot on them is degenerate, so they show whether an engine ends. Each problem is solved by
`native` and by `highs`, which find the same optimum by different methods.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from gomr import OBJECTIVES, Allocation, Demand, Edge, Problem
from gomr.errors import SolverError
from gomr.solving import allocate

CAPACITY_BPS = 10.0
MOST_TIMES_HIGHS = 5.0
"""CPU time that `native` may take, in that of `highs`."""
EXACT = 1e-9
BUDGET_S = 60.0
"""Seconds of wall time for each solve."""
FLOWS_PER_LINK = (1, 4, 12)
"""From what fits to many times what fits."""


def fat_tree(ports: int) -> nx.Graph:
    """Return the switches of a fat-tree (M. Al-Fares et al., SIGCOMM 2008)."""
    graph, half = nx.Graph(), ports // 2
    for pod in range(ports):
        for upper in range(half):
            graph.add_edges_from(((pod, "aggregation", upper), (pod, "edge", lower)) for lower in range(half))
            graph.add_edges_from((("core", upper, core), (pod, "aggregation", upper)) for core in range(half))
    return graph


KINDS: dict[str, tuple[Callable[[int], nx.Graph], tuple[int, int, int]]] = {
    "grid": (lambda side: nx.grid_2d_graph(side, side), (3, 5, 7)),
    "torus": (lambda side: nx.grid_2d_graph(side, side, periodic=True), (3, 4, 6)),
    "ring": (nx.cycle_graph, (5, 10, 30)),
    "leaf-spine": (lambda spines: nx.complete_bipartite_graph(spines, 2 * spines), (2, 4, 6)),
    "fat-tree": (fat_tree, (2, 4, 6)),
}
"""How to make a network of a size, and three sizes."""


def problem_of(graph: nx.Graph, flows: int, seed: int, capacity_bps: float = CAPACITY_BPS) -> Problem:
    """Return unit demands between random nodes of a graph whose links are all alike."""
    names = {node: str(number) for number, node in enumerate(graph.nodes)}
    links = [(names[tail], names[head]) for tail, head in graph.edges]
    ends = [pair for tail, head in links for pair in ((tail, head), (head, tail))]
    edges = tuple(Edge(f"{tail}->{head}", tail, head, capacity_bps, 1e-3) for tail, head in ends)
    reverse = {f"{tail}->{head}": f"{head}->{tail}" for tail, head in ends}
    draw, nodes = random.Random(seed), list(names.values())
    pairs = [draw.sample(nodes, 2) for _ in range(flows)]
    demands = tuple(Demand(f"f{number}", tail, head, 1.0) for number, (tail, head) in enumerate(pairs))
    return Problem(edges, demands, reverse)


@dataclass(frozen=True)
class Instance:
    """A network by its kind and size, with this many unit demands under an objective."""

    kind: str
    size: int
    flows: int
    objective: str

    def problem(self) -> Problem:
        """Return the problem; equal instances have equal ones."""
        return problem_of(KINDS[self.kind][0](self.size), self.flows, seed=self.flows)

    def __str__(self) -> str:
        """Name it in a line."""
        return f"{self.kind} {self.size}, {self.flows} flows, {self.objective}"


def instances() -> Iterator[Instance]:
    """Yield every kind, size, number of flows and objective, and the grid of 9 x 9 nodes."""
    for kind, (make, sizes) in KINDS.items():
        for size in sizes:
            links = make(size).number_of_edges()
            for flows in FLOWS_PER_LINK:
                for objective in OBJECTIVES:
                    yield Instance(kind, size, flows * links, objective)
    for flows in (700, 1500):
        for objective in OBJECTIVES:
            yield Instance("grid", 9, flows, objective)


@dataclass(frozen=True)
class Comparison:
    """What two engines made of an instance; times are CPU times of the process.

    Attributes:
        instance: The instance.
        native_s: Of `native`.
        highs_s: Of `highs`; at least this where it did not end.
        highs_ended: Whether `highs` came to its end within the budget.
        difference: Largest relative difference in the first objective, under `max_min` in any rate; None
            where `highs` did not end.
        gap: Of `native`, as its certificate proves it.
        failure: Why `native` has no optimum; None if it has.
    """

    instance: Instance
    native_s: float
    highs_s: float
    highs_ended: bool
    difference: float | None
    gap: float | None
    failure: str | None = None

    @property
    def times(self) -> float:
        """The time of `native` in that of `highs`."""
        return self.native_s / self.highs_s

    @property
    def is_right(self) -> bool:
        """Whether `native` ended at the optimum, in time."""
        if self.failure is not None or self.gap is None or self.gap > EXACT:
            return False
        return (self.difference or 0.0) <= EXACT and self.times <= MOST_TIMES_HIGHS


def compare(instance: Instance, budget_s: float) -> Comparison:
    """Solve an instance by both engines, each within this many seconds."""
    problem = instance.problem()
    native_s, native = _timed(problem, instance.objective, "native", budget_s)
    highs_s, highs = _timed(problem, instance.objective, "highs", budget_s)
    ended = isinstance(highs, Allocation) and not highs.timed_out
    if not isinstance(native, Allocation) or native.timed_out:
        failure = native if isinstance(native, str) else f"no optimum within {budget_s:g} s"
        return Comparison(instance, native_s, highs_s, ended, None, None, failure)
    difference = _difference(problem, native, highs) if isinstance(highs, Allocation) and ended else None
    return Comparison(instance, native_s, highs_s, ended, difference, native.gap)


def _timed(problem: Problem, objective: str, engine: str, budget_s: float) -> tuple[float, Allocation | str]:
    started = time.process_time()
    try:
        allocation: Allocation | str = allocate(problem, objective, engine, time_limit_s=budget_s)
    except SolverError as error:
        allocation = str(error)
    return time.process_time() - started, allocation


def _difference(problem: Problem, one: Allocation, other: Allocation) -> float:
    if one.objective != "max_min":
        return abs(one.value_bps - other.value_bps) / max(one.value_bps, other.value_bps, 1e-300)
    rates = ((one.rate_bps(demand.id), other.rate_bps(demand.id)) for demand in problem.demands)
    return max(abs(a - b) / max(a, b) for a, b in rates if max(a, b) > 0)


def warm_up() -> None:
    """Load both engines, so that no instance pays for it."""
    problem = Instance("ring", 5, 5, "fair").problem()
    for engine in ("native", "highs"):
        for objective in OBJECTIVES:
            allocate(problem, objective, engine)


def table(comparisons: Sequence[Comparison]) -> str:
    """Return what the comparisons come to, and each that is not right."""
    wrong = [comparison for comparison in comparisons if not comparison.is_right]
    slowest = max(comparisons, key=lambda comparison: comparison.times)
    compared = [comparison.difference for comparison in comparisons if comparison.difference is not None]
    lines = [
        "| instances | ended | compared with highs | largest difference | most CPU time | in highs' time |",
        "|---|---|---|---|---|---|",
        f"| {len(comparisons)} | {sum(c.failure is None for c in comparisons)} | {len(compared)} "
        f"| {max(compared, default=0.0):.1e} | {max(c.native_s for c in comparisons):.2f} s "
        f"| {slowest.times:.2g} times ({slowest.instance}) |",
        "",
    ]
    for one in wrong:
        highs = f"{'' if one.highs_ended else 'over '}{one.highs_s:.3g} s"
        what = one.failure or f"difference {one.difference}, gap {one.gap}"
        lines.append(f"- {one.instance}: {one.native_s:.3g} s, highs {highs}; {what}")
    return "\n".join(lines) + "\n"


def main(budget_s: float, out: Path) -> int:
    """Compare all instances and write the table; returns 1 if one is not right."""
    warm_up()
    comparisons = []
    for instance in instances():
        comparisons.append(compare(instance, budget_s))
        one = comparisons[-1]
        print(
            f"{instance}: native {one.native_s:.3g} s, highs {one.highs_s:.3g} s", file=sys.stderr, flush=True
        )
    text = table(comparisons)
    out.mkdir(parents=True, exist_ok=True)
    (out / "structured.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if all(one.is_right for one in comparisons) else 1
