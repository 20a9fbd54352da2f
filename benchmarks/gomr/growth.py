"""How time and memory grow with demands and with nodes, beside HiGHS and or-tools' PDLP.

Every cell has a process of its own, which tells its CPU time, all threads, and its peak of memory. `native`
and `highs` route at a load of 0.9 or 1.1 and prove it; PDLP maximises the throughput alone, over an edge
formulation with the demands of each source together, to a relative gap of 1e-6. It is run by `uv` in an
environment of its own, since HiGHS and or-tools cannot be loaded into one process.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.gomr.cells import NO_ANSWER, in_own_process, peak_mb
from benchmarks.gomr.networks import SEED, geometric
from benchmarks.gomr.source_program import arrays, source_program
from experiments.routing.all_pairs import AllPairs
from gomr import Problem, from_network
from gomr.demands import Traffic
from gomr.errors import SolverError
from gomr.load import at_load
from gomr.solving import allocate
from topologies import Network

BUDGET_S = 60.0
PDLP = "pdlp"
MATRIX = 0
"""Instead of a number of flows: one between each ordered pair of nodes."""
SERIES: Sequence[tuple[int, int, float, tuple[str, ...]]] = (
    *((100, flows, 1.1, ("native", "highs", PDLP)) for flows in (250, 500, 1000, 2000, 4000, 8000)),
    *((nodes, 10 * nodes, 1.1, ("native", "highs", PDLP)) for nodes in (25, 50, 200)),
    *((nodes, 10 * nodes, 1.1, ("native",)) for nodes in (500, 1000, 2000)),
    *((nodes, MATRIX, 0.9, ("native",)) for nodes in (100, 250, 500, 1000, 2000)),
    *((nodes, MATRIX, 1.1, ("native",)) for nodes in (100, 250, 500)),
)
"""Nodes, flows, load and engines of each row."""


@dataclass(frozen=True)
class Cell:
    """One engine on one problem; `scale_s` is CPU time of finding the load, `solve_s` of the solve."""

    nodes: int
    edges: int
    flows: int
    load: float
    engine: str
    scale_s: float | None = None
    solve_s: float | None = None
    peak_mb: float | None = None
    gap: float | None = None
    timed_out: bool = False
    failure: str | None = None


def main(budget_s: float, out: Path, *, quick: bool) -> int:
    """Measure all rows and write `growth.md` and `growth.json` after each; returns the exit status."""
    cells: list[Cell] = []
    out.mkdir(parents=True, exist_ok=True)
    for nodes, flows, load, engines in SERIES:
        if quick and nodes > 200:
            continue
        for engine in engines:
            print(f"{nodes} nodes, {flows or 'all pairs'}, load {load}, {engine}", file=sys.stderr)
            cell = Cell(nodes, 0, flows, load, engine)
            measured = in_own_process(_measured, cell, budget_s)
            cells.append(measured or replace(cell, failure=NO_ANSWER))
            (out / "growth.md").write_text(_markdown(cells, budget_s), encoding="utf-8")
            document = json.dumps([asdict(cell) for cell in cells], indent=2) + "\n"
            (out / "growth.json").write_text(document, encoding="utf-8")
    sys.stdout.write(_markdown(cells, budget_s))
    return 0


def _measured(cell: Cell, budget_s: float) -> Cell:
    network = geometric(cell.nodes)
    problem = _problem(network, cell.flows)
    cell = replace(cell, edges=len(problem.edges), flows=len(problem.demands))
    try:
        started = time.process_time()
        problem = at_load(problem, cell.load)
        cell = replace(cell, scale_s=time.process_time() - started)
        run = _pdlp if cell.engine == PDLP else _solve
        return run(cell, problem, budget_s)
    except SolverError as error:
        return replace(cell, failure=str(error))


def _problem(network: Network, flows: int) -> Problem:
    if flows == MATRIX:
        return from_network(network, AllPairs(network.switches, SEED).flows())
    return from_network(network, Traffic("gravity", network.switches, SEED).flows(flows))


def _solve(cell: Cell, problem: Problem, budget_s: float) -> Cell:
    started = time.process_time()
    allocation = allocate(problem, engine=cell.engine, time_limit_s=budget_s)
    taken_s = time.process_time() - started
    return replace(
        cell, solve_s=taken_s, gap=allocation.gap, timed_out=allocation.timed_out, peak_mb=peak_mb()
    )


def _pdlp(cell: Cell, problem: Problem, budget_s: float) -> Cell:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    if uv is None:
        return replace(cell, failure="uv is not installed")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.npz"
        np.savez(model, allow_pickle=False, **arrays(source_program(problem)))
        script = str(Path(__file__).with_name("pdlp.py"))
        environment = [
            *["run", "--isolated", "--no-project", "--with", "ortools", "--with", "scipy", "python"],
            script,
        ]
        ran = subprocess.run(
            [uv, *environment, str(model), str(budget_s)], capture_output=True, text=True, check=False
        )
    if ran.returncode != 0:
        return replace(cell, failure=ran.stderr.strip().splitlines()[-1][:120])
    said = json.loads(ran.stdout.splitlines()[-1])
    gap = 1 - said["value"] * problem.unit_bps / allocate(problem).admitted_bps
    is_over = said["status"] != "optimal"
    return replace(cell, solve_s=said["cpu_s"], gap=gap, timed_out=is_over, peak_mb=said["peak_mb"])


def _markdown(cells: Sequence[Cell], budget_s: float) -> str:
    lines = [
        "| nodes | edges | flows | load | engine | to the load | solve | gap | peak |",
        "| ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for cell in cells:
        over = f"over {budget_s:g} s, {cell.solve_s:.3g} s of CPU time" if cell.timed_out else None
        solved = "" if cell.solve_s is None else f"{cell.solve_s:.3g} s"
        texts = (
            f"{cell.nodes:,}",
            f"{cell.edges:,}",
            f"{cell.flows:,}",
            f"{cell.load:g}",
            cell.engine,
            "" if cell.scale_s is None else f"{cell.scale_s:.2g} s",
            cell.failure or over or solved,
            "" if cell.gap is None else f"{cell.gap:.0e}",
            "" if cell.peak_mb is None else f"{cell.peak_mb:.0f} MB",
        )
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"
