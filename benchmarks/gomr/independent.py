"""Every objective beside linear programmes of its definition, on networks that stand nowhere else here.

The programmes (`edge_program`) are solved by scipy, over edges and not over paths, and every allocation is
checked against its problem once more: paths that lead where they should, no link over its capacity.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from benchmarks.gomr.edge_program import optimum
from benchmarks.pages import markdown_table
from gomr import OBJECTIVES, Allocation, Demand, Edge, Problem
from gomr.solving import allocate

EXACT = 1e-9
COUNT = 240
"""Problems, each under every objective."""

STRUCTURED: dict[str, Callable[[random.Random], nx.Graph]] = {
    "hypercube": lambda draw: nx.hypercube_graph(draw.randint(2, 3)),
    "Petersen": lambda _: nx.petersen_graph(),
    "binary tree": lambda draw: nx.balanced_tree(2, draw.randint(2, 3)),
    "ladder": lambda draw: nx.ladder_graph(draw.randint(3, 5)),
    "Moebius ladder": lambda _: nx.circulant_graph(8, [1, 4]),
    "circulant": lambda draw: nx.circulant_graph(draw.randint(7, 11), [1, 3]),
    "barbell": lambda draw: nx.barbell_graph(draw.randint(3, 4), draw.randint(0, 3)),
    "complete": lambda draw: nx.complete_graph(draw.randint(4, 7)),
    "wheel": lambda draw: nx.wheel_graph(draw.randint(5, 9)),
    "triangles": lambda draw: nx.triangular_lattice_graph(2, draw.randint(3, 4)),
    "turan": lambda draw: nx.turan_graph(draw.randint(6, 9), 3),
    "cube": lambda _: nx.cubical_graph(),
}
"""All links alike, so nearly every step of a simplex is degenerate."""

RANDOM: dict[str, Callable[[random.Random], nx.Graph]] = {
    "regular": lambda draw: nx.random_regular_graph(3, 10, seed=draw.randrange(1 << 30)),
    "Barabasi-Albert": lambda draw: nx.barabasi_albert_graph(
        draw.randint(6, 12), 2, seed=draw.randrange(1 << 30)
    ),
    "Watts-Strogatz": lambda draw: nx.connected_watts_strogatz_graph(
        draw.randint(6, 12), 4, 0.3, seed=draw.randrange(1 << 30)
    ),
    "G(n, p)": lambda draw: nx.gnp_random_graph(
        draw.randint(5, 11), 0.35, seed=draw.randrange(1 << 30), directed=True
    ),
}
"""Rates and delays of every size, in each direction its own."""


def problems(count: int, seed: int) -> Iterator[tuple[str, Problem]]:
    """Yield problems with their names, structured and random ones in turn."""
    kinds = [(name, make, True) for name, make in STRUCTURED.items()]
    # As many of each sort.
    repeats = len(STRUCTURED) // len(RANDOM)
    kinds += [(name, make, False) for name, make in RANDOM.items() for _ in range(repeats)]
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        name, make, alike = kinds[number % len(kinds)]
        yield f"{name} ({number})", _problem(make(draw), draw, alike=alike)


def _problem(graph: nx.Graph, draw: random.Random, *, alike: bool) -> Problem:
    names = {node: str(number) for number, node in enumerate(graph.nodes)}
    links = [(names[tail], names[head]) for tail, head in graph.edges]
    if not graph.is_directed():
        links = [pair for tail, head in links for pair in ((tail, head), (head, tail))]
    if not alike and draw.random() < 0.3:  # parallel edges
        links += draw.sample(links, min(3, len(links)))
    edges = tuple(
        Edge(
            f"e{number}",
            tail,
            head,
            10.0 if alike else draw.choice((1e9, 2.5e9, 1e10 * draw.random())),
            1e-3 if alike else draw.choice((0.0, 1e-3, draw.random() * 2e-2)),
        )
        for number, (tail, head) in enumerate(links)
    )
    nodes = sorted({node for link in links for node in link})
    demands = []
    for number in range(draw.randint(3, 14)):
        source, destination = draw.sample(nodes, 2)
        rate = draw.choice((5.0, 10.0, 20.0)) if alike else draw.choice((1e8, 3e9)) * draw.uniform(0.2, 4)
        weight = 1.0 if alike else draw.choice((1.0, 1.0, 2.0, 0.5))
        demands.append(Demand(f"d{number}", source, destination, rate, weight=weight))
    return Problem(edges, tuple(demands))


@dataclass(frozen=True)
class Comparison:
    """How far an allocation is from what the linear programmes say.

    Attributes:
        name: The problem.
        objective: The objective.
        differences: Relative ones, by what is compared.
        violation: By how much of a capacity or request limits are broken.
        gap: What the allocation's certificate says.
    """

    name: str
    objective: str
    differences: dict[str, float]
    violation: float
    gap: float

    @property
    def worst(self) -> float:
        """The largest of all."""
        return max(*self.differences.values(), self.violation, self.gap)


def compare(name: str, problem: Problem, objective: str) -> Comparison:
    """Solve a problem both ways."""
    allocation, expected = allocate(problem, objective), optimum(problem, objective)
    differences = {"value": _apart(allocation.value_bps, expected.value_bps)}
    if expected.cost_bps_s is not None:
        scale = max(edge.delay_s for edge in problem.edges) * max(expected.value_bps, 1e-300)
        differences["cost"] = abs(allocation.cost_bps_s - expected.cost_bps_s) / max(scale, 1e-300)
    if expected.rates_bps is not None:
        pairs = zip(problem.demands, expected.rates_bps, strict=True)
        apart = (_apart(allocation.rate_bps(demand.id), rate_bps) for demand, rate_bps in pairs)
        differences["rates"] = max(apart, default=0.0)
    if expected.max_utilisation is not None:
        differences["utilisation"] = _apart(allocation.max_utilisation, expected.max_utilisation)
    return Comparison(name, objective, differences, _violation(problem, allocation), allocation.gap)


def _apart(one: float, other: float) -> float:
    largest = max(abs(one), abs(other))
    return abs(one - other) / largest if largest else 0.0


def _violation(problem: Problem, allocation: Allocation) -> float:
    edges = {edge.id: edge for edge in problem.edges}
    load_bps = dict.fromkeys(edges, 0.0)
    worst = 0.0
    for demand in problem.demands:
        for path in allocation.paths[demand.id]:
            at = demand.source
            for edge in (edges[name] for name in path.edges):
                if edge.tail != at:
                    return 1.0
                at = edge.head
                load_bps[edge.id] += path.rate_bps
            if at != demand.destination or path.rate_bps <= 0:
                return 1.0
        worst = max(worst, allocation.rate_bps(demand.id) / demand.rate_bps - 1)
    return max(worst, *(load_bps[edge.id] / edge.capacity_bps - 1 for edge in problem.edges))


def table(comparisons: Sequence[Comparison]) -> str:
    """Return a line for each objective, and each comparison that is further apart than `EXACT`."""
    rows = []
    for objective in OBJECTIVES:
        own = [one for one in comparisons if one.objective == objective]
        what = [
            max((one.differences.get(name, 0.0) for one in own), default=0.0)
            for name in ("value", "cost", "rates", "utilisation")
        ]
        cells = [*what, max(one.violation for one in own), max(one.gap for one in own)]
        rows.append((objective, str(len(own)), *(f"{cell:.1e}" for cell in cells)))
    head = ("objective", "problems", "value", "cost", "rates", "utilisation", "limits", "largest gap")
    lines = [*markdown_table(head, rows)]
    lines += [f"- {one.name}, {one.objective}: {one}" for one in comparisons if one.worst > EXACT]
    return "\n".join(lines) + "\n"


def main(count: int, seed: int, out: Path) -> int:
    """Compare this many problems under every objective; returns 1 if one is further apart than `EXACT`."""
    comparisons = []
    for name, problem in problems(count, seed):
        own = [compare(name, problem, objective) for objective in OBJECTIVES]
        comparisons += own
        print(f"{name}: {max(one.worst for one in own):.1e}", file=sys.stderr, flush=True)
    text = table(comparisons)
    out.mkdir(parents=True, exist_ok=True)
    (out / "independent.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if all(one.worst <= EXACT for one in comparisons) else 1
