"""Large problems by `native`, beside HiGHS's methods and or-tools' PDLP: processor time, gap and memory.

`native` brings the demands to a load, routes them by the least delay and proves it. The others maximise the
throughput alone, over edges with the demands of each source together (`source_program`), with ten times as
long as `native` took. Every cell has a process of its own, which tells its CPU time, all threads, and its
peak of memory. or-tools is run by `uv` in an environment of its own, since it and HiGHS cannot be loaded into
one process. HiPO is not in HiGHS's wheel.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.gomr.cells import NO_ANSWER, in_own_process, peak_mb
from benchmarks.gomr.networks import SEED, geometric
from benchmarks.gomr.regular import CAPACITY_BPS, fat_tree, problem_of
from benchmarks.gomr.source_program import HIGHS_METHODS, Arrays, solved, source_program
from experiments.routing.all_pairs import AllPairs
from gomr import Demand, DemandColumns, Problem, from_network
from gomr.demands import Traffic, scaled
from gomr.errors import SolverError
from gomr.load import find_load_factor
from gomr.solving import allocate

BUDGET_S = 300.0
TIMES_NATIVE = 10.0
LEAST_S = 5.0
"""Seconds that other solvers have, however quick `native` is."""
MOST_VARIABLES = 3_000_000
"""Sources times edges beyond which the programme over edges is not stated."""
PDLP = "or-tools' PDLP"
METHODS = ("native", *HIGHS_METHODS, PDLP)
PERMUTATION, ONES = "permutation", "ones"


@dataclass(frozen=True)
class Row:
    """A problem: a network, its traffic and load (None: the rates as they are).

    Attributes:
        network: `geometric:N`, `fat-tree:K`, or a file that `mstcp-lab solve` reads.
        traffic: `gravity` or `uniform` between all pairs, or some of them (`gravity:1000`); `ones` (each
            pair asks for a thousandth of the smallest capacity); or `permutation`, at the rate of a link.
        load: As `gomr.load` defines it.
    """

    network: str
    traffic: str
    load: float | None

    @property
    def name(self) -> str:
        """A short name."""
        load = "" if self.load is None else f" at {self.load:g}"
        return f"{Path(self.network).stem.replace(':', ' ')}, {self.traffic.replace(':', ' ')}{load}"


BUILT_IN: Sequence[Row] = (
    Row("geometric:100", "gravity:1000", 1.1),
    Row("fat-tree:8", PERMUTATION, None),
    Row("fat-tree:16", PERMUTATION, None),
    *(Row("geometric:1000", traffic, load) for traffic in ("gravity", "uniform") for load in (0.9, 1.1, 1.5)),
)
QUICK = 2
"""Rows of these that --quick takes."""


def rows_of(file: Path) -> Iterable[Row]:
    """Return the problems on a network of a file."""
    return (*(Row(str(file), "gravity", load) for load in (0.9, 1.5, 3.0)), Row(str(file), ONES, None))


@dataclass(frozen=True)
class Cell:
    """A method on a problem; times are CPU times.

    Attributes:
        load_s: Of finding the factor that brings the demands to their load.
        factor: That factor.
        admitted_bps: The throughput.
        gap: Of `native` as proved; of others, by what they fall short of `native`.
        failure: Why there is no answer.
    """

    row: Row
    method: str
    variables: int = 0
    demands: int = 0
    load_s: float | None = None
    factor: float = 1.0
    solve_s: float | None = None
    admitted_bps: float = 0.0
    gap: float | None = None
    timed_out: bool = False
    peak_mb: float | None = None
    failure: str | None = None


def main(files: Sequence[Path], budget_s: float, out: Path, *, quick: bool) -> int:
    """Measure all rows and write `sizes.md` and `sizes.json` after each; returns the exit status."""
    rows = [*BUILT_IN[: QUICK if quick else None], *(row for file in files for row in rows_of(file))]
    cells: list[Cell] = []
    out.mkdir(parents=True, exist_ok=True)
    for row in rows:
        native = None
        for method in METHODS:
            print(f"{row.name}, {method}", file=sys.stderr)
            cell = native or Cell(row, method)
            cell = in_own_process(_measured, replace(cell, method=method), budget_s) or replace(
                cell, method=method, failure=NO_ANSWER
            )
            native = native or cell
            cells.append(cell)
            (out / "sizes.md").write_text(markdown(cells), encoding="utf-8")
            document = json.dumps([asdict(one) for one in cells], indent=2) + "\n"
            (out / "sizes.json").write_text(document, encoding="utf-8")
    sys.stdout.write(markdown(cells))
    return 0


def problem_of_row(row: Row) -> Problem:
    """Return a row's problem before it is brought to its load."""
    kind, _, size = row.network.partition(":")
    if kind == "fat-tree":
        return _permutation(int(size))
    if kind == "geometric":
        network = geometric(int(size))
    else:
        # networkx is slow to import, and nothing else here needs it.
        from topologies.routable import load_routable

        network = load_routable(row.network).network
    nodes = network.switches
    traffic, _, count = row.traffic.partition(":")
    if count:
        return from_network(network, Traffic(traffic, nodes, SEED).flows(int(count)))
    if traffic == "gravity":
        return from_network(network, AllPairs(nodes, SEED).flows())
    rates = np.ones((len(nodes), len(nodes)))
    if traffic == ONES:
        empty = from_network(network, ())
        rates *= min(edge.capacity_bps for edge in empty.edges) / 1000
    else:
        rates *= np.random.default_rng(SEED).uniform(0.5, 1.5, rates.shape)
    return from_network(network, DemandColumns.from_matrix(nodes, rates))


def _permutation(ports: int) -> Problem:
    """Return a fat-tree whose hosts each send at the rate of a link to one other."""
    graph = fat_tree(ports)
    hosts = [(*switch, host) for switch in list(graph) if switch[1] == "edge" for host in range(ports // 2)]
    graph.add_edges_from((host, host[:-1]) for host in hosts)
    number = {node: str(place) for place, node in enumerate(graph)}
    random.Random(SEED).shuffle(hosts)
    pairs = zip(hosts, hosts[1:] + hosts[:1], strict=True)
    demands = (Demand(f"f{number[a]}", number[a], number[b], CAPACITY_BPS) for a, b in pairs)
    return replace(problem_of(graph, 0), demands=tuple(demands))


def _measured(cell: Cell, budget_s: float) -> Cell:
    problem = problem_of_row(cell.row)
    try:
        if cell.method == "native":
            return _native(cell, problem, budget_s)
        return _other(cell, _scaled(problem, cell.factor), budget_s)
    except SolverError as error:
        return replace(cell, failure=str(error))


def _scaled(problem: Problem, factor: float) -> Problem:
    demands = problem.demands
    more = demands.scaled(factor) if isinstance(demands, DemandColumns) else scaled(demands, factor)
    return replace(problem, demands=more)


def _native(cell: Cell, problem: Problem, budget_s: float) -> Cell:
    sources = {demand.source for demand in problem.demands}
    cell = replace(cell, variables=len(sources) * len(problem.edges), demands=len(problem.demands))
    started = time.process_time()
    if cell.row.load is not None:
        found = find_load_factor(problem, cell.row.load, time_limit_s=budget_s)
        problem = _scaled(problem, found.factor)
        load_s = time.process_time() - started
        cell = replace(cell, factor=found.factor, load_s=load_s)
    started = time.process_time()
    allocation = allocate(problem, time_limit_s=budget_s)
    return replace(
        cell,
        solve_s=time.process_time() - started,
        admitted_bps=allocation.admitted_bps,
        gap=allocation.gap,
        timed_out=allocation.timed_out,
        peak_mb=peak_mb(),
    )


def _other(native: Cell, problem: Problem, budget_s: float) -> Cell:
    cell = replace(native, load_s=None, solve_s=None, gap=None, timed_out=False)
    if native.variables > MOST_VARIABLES:
        return replace(cell, failure=f"{native.variables:,} variables")
    limit_s = min(budget_s, max(LEAST_S, TIMES_NATIVE * (native.solve_s or budget_s)))
    program = source_program(problem)
    run = _by_or_tools if cell.method == PDLP else partial(solved, method=cell.method)
    taken_s, value = run(program, budget_s=limit_s)
    if value is None:
        return replace(cell, failure=f"not in {limit_s:.0f} s")
    return replace(cell, solve_s=taken_s, gap=1 - value * problem.unit_bps / native.admitted_bps)


def _by_or_tools(program: Arrays, budget_s: float) -> tuple[float, float | None]:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    if uv is None:
        raise SolverError(PDLP, "uv is not installed")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.npz"
        np.savez(model, allow_pickle=False, **program)
        packages = ["--with", "ortools", "--with", "scipy"]
        script = str(Path(__file__).with_name("pdlp.py"))
        command = [uv, "run", "--isolated", "--no-project", *packages, "python", script, str(model)]
        ran = subprocess.run([*command, str(budget_s)], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SolverError(PDLP, ran.stderr.strip().splitlines()[-1][:120])
    said = json.loads(ran.stdout.splitlines()[-1])
    return said["cpu_s"], said["value"] if said["status"] == "optimal" else None


def markdown(cells: Sequence[Cell]) -> str:
    """Return a row for each problem, and a column for each method: CPU time (gap)."""
    heads = ("problem", "demands", "to the load", *METHODS, "peak of native")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in dict.fromkeys(cell.row for cell in cells):
        by_method = {cell.method: cell for cell in cells if cell.row == row}
        native = by_method["native"]
        texts = (
            row.name,
            f"{native.demands:,}",
            "" if native.load_s is None else f"{native.load_s:.3g} s",
            *(_text(by_method.get(method)) for method in METHODS),
            "" if native.peak_mb is None else f"{native.peak_mb / 1e3:.2g} GB",
        )
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def _text(cell: Cell | None) -> str:
    if cell is None or cell.solve_s is None or cell.gap is None:
        return "" if cell is None else cell.failure or ""
    ended = " at the limit" if cell.timed_out else ""
    return f"{cell.solve_s:.3g} s{ended} ({cell.gap:.0e})"
