"""Random regular networks, where nearly every step of a simplex is degenerate, beside HiGHS.

Fat-trees, tori, hypercubes, cliques, complete bipartite graphs, circulants and random regular graphs of equal
links carry permutations, random pairs or one demand between each two nodes. HiGHS solves the first objective
alone, with the flows of each source together on the edges, by its dual simplex and by its interior point, and
the quicker one counts.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import highspy
import networkx as nx
import numpy as np

from benchmarks.gomr.structured import fat_tree, problem_of
from gomr import Allocation, Demand, Problem
from gomr.errors import SolverError
from gomr.solving import allocate

COUNT = 1000
QUICK = 24
BUDGET_S = 30.0
"""Seconds of wall time for each solve."""
MOST_TIMES_HIGHS = 10.0
LEAST_S = 0.05
"""CPU time that nobody would notice, whatever HiGHS takes."""
EXACT = 1e-9
AGREES = 1e-6
"""What HiGHS is precise to."""
VALUES = {"max_throughput_min_delay": (1.0,), "fair": tuple(1 / part for part in range(1, 9))}
"""Objectives with a linear programme of one stage, and what a bit/s of each part of a request is worth."""

NETWORKS: dict[str, Callable[[random.Random], nx.Graph]] = {
    "fat-tree": lambda draw: fat_tree(draw.choice((4, 6, 8))),
    "torus": lambda draw: nx.grid_2d_graph(draw.randint(3, 7), draw.randint(3, 7), periodic=True),
    "hypercube": lambda draw: nx.hypercube_graph(draw.randint(3, 5)),
    "clique": lambda draw: nx.complete_graph(draw.randint(5, 20)),
    "bipartite": lambda draw: nx.complete_bipartite_graph(*[draw.randint(4, 12)] * 2),
    "circulant": lambda draw: nx.circulant_graph(draw.randint(12, 40), [1, 3, 5]),
    "regular": lambda draw: nx.random_regular_graph(4, 2 * draw.randint(5, 20), seed=draw.randrange(1 << 30)),
}


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
        return max(self.native_s - LEAST_S, 0.0) / self.highs_s


def instances(count: int, seed: int) -> Iterator[Instance]:
    """Yield the first `count` instances of a seed; each depends on its number alone."""
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        kind = list(NETWORKS)[number % len(NETWORKS)]
        problem = problem_of(NETWORKS[kind](draw), 0, seed=0)
        nodes = sorted({edge.tail for edge in problem.edges})
        traffic = draw.choice(("permutation", "pairs", "all"))
        rate_bps = draw.choice((1.0, 4.0, 10.0, 40.0))
        if traffic == "permutation":
            draw.shuffle(nodes)
            pairs = list(zip(nodes, nodes[1:] + nodes[:1], strict=True))
        elif traffic == "pairs":
            pairs = [(a, b) for a, b in (draw.sample(nodes, 2) for _ in range(3 * len(nodes)))]
        else:
            pairs, rate_bps = [(a, b) for a in nodes for b in nodes if a != b], rate_bps / len(nodes)
        demands = tuple(Demand(f"f{i}", a, b, rate_bps) for i, (a, b) in enumerate(pairs))
        objective = draw.choice(list(VALUES))
        name = f"{number}: {kind}, {len(nodes)} nodes, {traffic} at {rate_bps:.3g}, {objective}"
        yield Instance(name, Problem(problem.edges, demands, problem.reverse), objective)


def programme(problem: Problem, values: Sequence[float]) -> highspy.HighsLp:
    """Return the first objective as a programme over edges, the flows of each source together."""
    nodes = {name: at for at, name in enumerate(sorted({edge.tail for edge in problem.edges}))}
    sources = {name: at for at, name in enumerate(sorted({demand.source for demand in problem.demands}))}
    edges, parts = len(problem.edges), len(values)
    flows = len(sources) * edges
    capacity_row = len(sources) * len(nodes)
    rows: list[int] = []
    columns: list[int] = []
    entries: list[float] = []

    def add(row: int, column: int, entry: float) -> None:
        rows.append(row)
        columns.append(column)
        entries.append(entry)

    for source in range(len(sources)):
        for at, edge in enumerate(problem.edges):
            column = source * edges + at
            add(source * len(nodes) + nodes[edge.tail], column, 1.0)
            add(source * len(nodes) + nodes[edge.head], column, -1.0)
            add(capacity_row + at, column, 1.0)
    for number, demand in enumerate(problem.demands):
        first_row = sources[demand.source] * len(nodes)
        for part in range(parts):
            add(first_row + nodes[demand.source], flows + number * parts + part, -1.0)
            add(first_row + nodes[demand.destination], flows + number * parts + part, 1.0)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = capacity_row + edges, flows + len(problem.demands) * parts
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.concatenate([np.zeros(flows), np.tile(values, len(problem.demands))])
    lp.col_lower_ = np.zeros(lp.num_col_)
    requests = np.repeat([demand.rate_bps / parts for demand in problem.demands], parts)
    lp.col_upper_ = np.concatenate([np.full(flows, highspy.kHighsInf), requests])
    capacities = [edge.capacity_bps for edge in problem.edges]
    lp.row_lower_ = np.concatenate([np.zeros(capacity_row), np.full(edges, -highspy.kHighsInf)])
    lp.row_upper_ = np.concatenate([np.zeros(capacity_row), capacities])
    order = np.lexsort((rows, columns))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=lp.num_col_))])
    lp.a_matrix_.index_ = np.array(rows)[order]
    lp.a_matrix_.value_ = np.array(entries)[order]
    return lp


def by_highs(problem: Problem, values: Sequence[float], budget_s: float) -> tuple[float, float | None]:
    """Return the CPU time of HiGHS' quicker method and the optimum; None where neither ended."""
    lp = programme(problem, values)
    best: tuple[float, float | None] = (budget_s, None)
    for method in ("simplex", "ipm"):
        solver = highspy.Highs()
        for option, value in (("output_flag", False), ("solver", method), ("threads", 1)):
            solver.setOptionValue(option, value)
        solver.setOptionValue("time_limit", budget_s)
        solver.passModel(lp)
        started = time.process_time()
        solver.run()
        taken_s = time.process_time() - started
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal and taken_s < best[0]:
            best = (taken_s, solver.getInfo().objective_function_value)
    return best


def compare(instance: Instance, budget_s: float) -> Outcome:
    """Solve an instance by `native` and by HiGHS."""
    started = time.process_time()
    try:
        found: Allocation | str = allocate(
            instance.problem, instance.objective, "native", time_limit_s=budget_s
        )
    except SolverError as error:
        found = str(error)
    native_s = time.process_time() - started
    highs_s, optimum = by_highs(instance.problem, VALUES[instance.objective], budget_s)
    fault = found if isinstance(found, str) else _fault(found, optimum)
    return Outcome(instance.name, native_s, highs_s, fault)


def _fault(found: Allocation, optimum: float | None) -> str | None:
    if found.timed_out:
        return f"no optimum in time; proven to {found.gap:.1e}"
    if found.gap > EXACT:
        return f"a gap of {found.gap:.1e}"
    if optimum is not None and abs(found.value_bps - optimum) > AGREES * optimum:
        return f"{found.value_bps} where HiGHS has {optimum}"
    return None


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the totals, and each instance that is wrong or too slow."""
    slow = [one for one in outcomes if one.fault or one.times > MOST_TIMES_HIGHS]
    native_s, highs_s = (sum(getattr(one, field) for one in outcomes) for field in ("native_s", "highs_s"))
    lines = [
        "| instances | right | native, CPU time | HiGHS' best | most of native | over ten times HiGHS |",
        "|---|---|---|---|---|---|",
        f"| {len(outcomes)} | {sum(one.fault is None for one in outcomes)} | {native_s:.1f} s "
        f"| {highs_s:.1f} s "
        f"| {max(one.native_s for one in outcomes):.2f} s "
        f"| {sum(one.times > MOST_TIMES_HIGHS for one in outcomes)} |",
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
    return 0 if all(one.fault is None and one.times <= MOST_TIMES_HIGHS for one in outcomes) else 1
