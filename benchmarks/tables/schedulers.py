"""docs/mstcp.md: what the schedulers make of the butterfly at full load, simulated."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages import markdown_table
from experiments.sim import Simulation

from .cells import interval

PAGE = "mstcp.md"
SEEDS = range(1, 11)
DURATION_S = 30.0
SCHEDULERS = ("stochastic", "weighted", "earliest")


def schedulers() -> Iterator[str]:
    """Run the simulations, and return goodput and mean delay of both flows for each scheduler."""
    head = ("scheduler", "flow 1, Mbit/s", "mean delay, ms", "flow 2, Mbit/s", "mean delay, ms")
    rows = []
    for scheduler in SCHEDULERS:
        study = Simulation.load("butterfly", "2", settings={"mstcp.scheduler": scheduler})
        flows = study.run(("mstcp",), seeds=SEEDS, duration_s=DURATION_S).flows
        cells = [f"`{scheduler}`"]
        for flow in ("1", "2"):
            mine = [row for row in flows if row["flow"] == flow]
            cells.append(interval((row["goodput_bps"] for row in mine), 1e-6, 2))
            cells.append(interval((row["delay_mean_s"] for row in mine), 1e3, 1))
        rows.append(cells)
    return markdown_table(head, rows)


TABLES = {"schedulers": schedulers}
