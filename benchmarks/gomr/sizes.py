"""Large problems by `native`, beside HiGHS's methods and or-tools' PDLP: processor time, gap and memory.

`native` brings the demands to a load, routes them by the least delay and proves it, within a budget by the
clock. The others maximise the throughput alone, over edges with the demands of each source together
(`source_program`), with ten times as much processor time as `native` took, up to half a minute, and never
with less than it took. Every cell has a process of its own, which tells its CPU time, all threads, and its
peak of memory. What a run has measured already is kept, so that it can go on where it ended. or-tools, which
cannot be loaded into one process with HiGHS, and HiPO, whose package is HiGHS's `extras`, are run by `uv` in
environments of their own.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gomr.cells import NO_ANSWER, in_own_process
from benchmarks.gomr.networks import SEED, geometric
from benchmarks.gomr.one_program import OR_TOOLS
from benchmarks.gomr.regular import CAPACITY_BPS, fat_tree, problem_of
from benchmarks.gomr.source_program import source_program
from benchmarks.pages import markdown_table
from benchmarks.peak_memory import peak_memory_mib
from experiments.routing.all_pairs import AllPairs
from experiments.routing.case import make_case
from gomr import Demand, DemandColumns, Problem, from_network
from gomr.demands import Traffic, scaled
from gomr.errors import SolverError
from gomr.load import find_load_factor
from gomr.solving import allocate

BUDGET_S = 300.0
TIMES_NATIVE = 10.0
MIN_S, MAX_S = 5.0, 30.0
"""Seconds of processor time that other solvers have, however quick `native` is, and however slow below it."""
MAX_VARIABLES = 3_000_000
"""Sources times edges beyond which the programme over edges is not stated."""
OWN_ENVIRONMENTS = {"hipo": ("highspy[extras]", "scipy"), OR_TOOLS: ("ortools", "scipy")}
"""Packages of methods that have an environment of their own."""
REPOSITORY = Path(__file__).parents[2]
METHODS = {
    "native": "native",
    "simplex": "HiGHS simplex",
    "ipx": "HiGHS IPX",
    "hipo": "HiGHS HiPO",
    "pdlp": "HiGHS PDLP",
    OR_TOOLS: OR_TOOLS,
}
"""Their names in the table."""
PERMUTATION = "permutation"
TO_SPACES = str.maketrans(":_", "  ")
TIME_LIMIT_CODES = (-signal.SIGXCPU, -signal.SIGKILL, 128 + signal.SIGXCPU, 128 + signal.SIGKILL)
"""What a process ends with whose processor time is up, also below `uv`."""


@dataclass(frozen=True)
class Row:
    """A problem: a network, its traffic and load (None: the rates as they are).

    Attributes:
        network: `geometric:N`, `fat-tree:K`, or a file that `mstcp-lab solve` reads.
        traffic: `gravity` or `uniform` between all pairs, or some of them (`gravity:1000`);
            `permutation`, at the rate of a link; or a file that `mstcp-lab solve` reads.
        load: As `gomr.load` defines it.
    """

    network: str
    traffic: str
    load: float | None

    @property
    def name(self) -> str:
        """A short name."""
        load = "" if self.load is None else f" at {self.load:g}"
        matrix = Path(self.traffic).name.removeprefix(f"{Path(self.network).name}_").partition("_1.0_")[0]
        return f"{Path(self.network).name.translate(TO_SPACES)}, {matrix.translate(TO_SPACES)}{load}"


BUILT_IN: Sequence[Row] = (
    Row("geometric:100", "gravity:1000", 1.1),
    Row("fat-tree:8", PERMUTATION, None),
    Row("fat-tree:16", PERMUTATION, None),
    *(Row("geometric:1000", traffic, load) for traffic in ("gravity", "uniform") for load in (0.9, 1.5)),
)
QUICK = 2
"""Rows of these that --quick takes."""


def rows_of(file: Path) -> Iterable[Row]:
    """Return the problems on a network of a file: gravity, and matrices beside it as Teal names them."""
    matrices = sorted(file.parent.glob(f"{file.name}_*_traffic-matrix.pkl"))
    gravity = (Row(str(file), "gravity", load) for load in (0.9, 1.5, 3.0))
    return (*gravity, *(Row(str(file), str(matrix), None) for matrix in matrices))


@dataclass(frozen=True)
class Cell:
    """A method on a problem; times are CPU times.

    Attributes:
        load_s: Of finding the factor that brings the demands to their load.
        load_gap: By what share the factor may be too small.
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
    load_gap: float = 0.0
    factor: float = 1.0
    solve_s: float | None = None
    admitted_bps: float = 0.0
    gap: float | None = None
    timed_out: bool = False
    peak_mb: float | None = None
    failure: str | None = None


def main(rows: Sequence[Row], budget_s: float, out: Path, *, as_json: bool) -> int:
    """Measure all rows and write `sizes.json` after each cell; returns the exit status."""
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "sizes.json"
    cells = cells_of(json.loads(kept.read_text(encoding="utf-8"))) if kept.exists() else []
    for row in rows:
        known = {cell.method: cell for cell in cells if cell.row == row}
        native = known.get("native")
        if native is None:
            print(row.name, file=sys.stderr)
            native = Cell(row, "native")
            native = in_own_process(_native, native, budget_s) or replace(native, failure=NO_ANSWER)
            cells.append(native)
            _keep(cells, kept)
        missing = [method for method in METHODS if method not in known and method != "native"]
        cells += in_own_process(_others, native, missing, budget_s) or []
        _keep(cells, kept)
    cells = [cell for row in rows for cell in cells if cell.row == row]
    sys.stdout.write(json.dumps([asdict(one) for one in cells]) if as_json else markdown(cells))
    return 0


def _keep(cells: Sequence[Cell], file: Path) -> None:
    file.write_text(json.dumps([asdict(one) for one in cells]), encoding="utf-8")


def cells_of(document: Sequence[Any]) -> list[Cell]:
    """Return the cells of a document."""
    return [Cell(**{**cell, "row": Row(**cell["row"])}) for cell in document]


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

        routable = load_routable(row.network)
        network = routable.network
        if Path(row.traffic).exists():
            return make_case(routable, row.traffic, flows=None, load=None, seed=SEED).problem()
    nodes = network.switches
    traffic, _, count = row.traffic.partition(":")
    if count:
        return from_network(network, Traffic(traffic, nodes, SEED).flows(int(count)))
    if traffic == "gravity":
        return from_network(network, AllPairs(nodes, SEED).flows())
    rates = np.random.default_rng(SEED).uniform(0.5, 1.5, (len(nodes), len(nodes)))
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


def _scaled(problem: Problem, factor: float) -> Problem:
    return replace(problem, demands=scaled(problem.demands, factor))


def _native(cell: Cell, budget_s: float) -> Cell:
    problem = problem_of_row(cell.row)
    demands = problem.demands
    columns = demands.source.tolist() if isinstance(demands, DemandColumns) else [d.source for d in demands]
    cell = replace(cell, variables=len(set(columns)) * len(problem.edges), demands=len(demands))
    started = time.process_time()
    try:
        if cell.row.load is not None:
            found = find_load_factor(problem, cell.row.load, time_limit_s=budget_s)
            problem = _scaled(problem, found.factor)
            load_s = time.process_time() - started
            cell = replace(cell, factor=found.factor, load_gap=found.gap, load_s=load_s)
        started = time.process_time()
        allocation = allocate(problem, time_limit_s=budget_s)
    except SolverError as error:
        return replace(cell, failure=str(error))
    return replace(
        cell,
        solve_s=time.process_time() - started,
        admitted_bps=allocation.admitted_bps,
        gap=allocation.gap,
        timed_out=allocation.timed_out,
        peak_mb=peak_memory_mib(),
    )


def _others(native: Cell, methods: Sequence[str], budget_s: float) -> list[Cell]:
    """Measure other solvers on what `native` has solved."""
    cells = [
        replace(native, method=method, load_s=None, solve_s=None, gap=None, timed_out=False)
        for method in methods
    ]
    if native.variables > MAX_VARIABLES:
        return [replace(cell, failure=f"{native.variables:,} variables") for cell in cells]
    own_s = native.solve_s or budget_s
    limit_s = min(budget_s, max(MIN_S, own_s, min(TIMES_NATIVE * own_s, MAX_S)))
    problem = _scaled(problem_of_row(native.row), native.factor)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.npz"
        np.savez(model, allow_pickle=False, **source_program(problem))
        return [_other(cell, model, limit_s, problem.unit_bps) for cell in cells]


def _other(cell: Cell, model: Path, limit_s: float, unit_bps: float) -> Cell:
    print(f"{cell.row.name}, {cell.method}", file=sys.stderr)
    command = [sys.executable]
    if cell.method in OWN_ENVIRONMENTS:
        uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
        if uv is None:
            return replace(cell, failure="uv is not installed")
        packages = [word for package in OWN_ENVIRONMENTS[cell.method] for word in ("--with", package)]
        command = [uv, "run", "--isolated", "--no-project", *packages, "python"]
    ran = subprocess.run(
        [*command, "-m", "benchmarks.gomr.one_program", str(model), cell.method, str(limit_s)],
        capture_output=True, text=True, check=False, cwd=REPOSITORY,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    if ran.returncode in TIME_LIMIT_CODES:
        return replace(cell, failure=f"not in {limit_s:.0f} s")
    if ran.returncode != 0:
        said = ran.stderr.strip().splitlines() or [f"ended with {ran.returncode}"]
        return replace(cell, failure=said[-1][:120])
    taken_s, value = json.loads(ran.stdout.splitlines()[-1])
    if value is None:
        return replace(cell, failure=f"no optimum after {taken_s:.3g} s")
    return replace(cell, solve_s=taken_s, gap=1 - value * unit_bps / cell.admitted_bps)


def markdown(cells: Sequence[Cell]) -> str:
    """Return a row for each problem, and a column for each method: CPU time (gap)."""
    heads = ("problem", "demands", "to the load", *METHODS.values(), "peak of native")
    rows = []
    for row in dict.fromkeys(cell.row for cell in cells):
        by_method = {cell.method: cell for cell in cells if cell.row == row}
        native = by_method["native"]
        texts = (
            row.name,
            f"{native.demands:,}",
            _load_text(native),
            *(_text(by_method.get(method)) for method in METHODS),
            "" if native.peak_mb is None else f"{native.peak_mb / 1e3:.2g} GB",
        )
        rows.append(texts)
    return "\n".join(markdown_table(heads, rows)) + "\n"


def _load_text(native: Cell) -> str:
    if native.load_s is None:
        return ""
    ended = f" at the limit ({native.load_gap:.0e})" if native.load_gap else ""
    return f"{native.load_s:.3g} s{ended}"


def _text(cell: Cell | None) -> str:
    if cell is None or cell.solve_s is None or cell.gap is None:
        return "" if cell is None else cell.failure or ""
    ended = " at the limit" if cell.timed_out else ""
    return f"{cell.solve_s:.3g} s{ended} ({cell.gap:.0e})"
