"""docs/networks.md: the scenarios beside the butterfly, simulated."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.pages import markdown_table
from experiments.sim import Simulation

from .cells import interval

PAGE = "networks.md"
SEEDS = range(1, 11)
STEADY = ("mstcp", "ppfs", "ospf", "ecmp", "mptcp", "mptcp-dualhomed", "mptcp-sdn")
FEW = ("mstcp", "ospf", "mptcp")

FlowRow = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column: its head, the metric, its unit's scale and digits."""

    head: str
    metric: str
    scale: float = 1.0
    digits: int = 2


GOODPUT = Column("goodput Mbit/s", "goodput_bps", 1e-6)
DELAYS = (Column("delay mean, ms", "delay_mean_s", 1e3, 1), Column("95 %", "delay_p95_s", 1e3, 1))
COMPLETION = Column("complete after, s", "completion_s")
TRANSFERS = (
    Column("completed", "transfers_completed", digits=0),
    Column("of", "transfers_started", digits=0),
    Column("mean, ms", "fct_mean_s", 1e3, 0),
    Column("p50", "fct_p50_s", 1e3, 0),
    Column("p95", "fct_p95_s", 1e3, 0),
    Column("p99", "fct_p99_s", 1e3, 0),
)


@dataclass(frozen=True)
class Table:
    """A case of a scenario with some protocols; runs of `duration_s` seconds, None for the scenario's."""

    scenario: str
    case: str
    protocols: Sequence[str]
    columns: Sequence[Column]
    duration_s: float | None = 20.0

    @property
    def name(self) -> str:
        """Between the markers of the page."""
        return f"{self.scenario} {self.case}"

    def lines(self) -> Iterator[str]:
        """Run the simulations and return the table."""
        study = Simulation.load(self.scenario, self.case)
        flows = study.run(self.protocols, seeds=SEEDS, duration_s=self.duration_s).flows
        rows = (
            self._row(protocol, flow, mine)
            for protocol in self.protocols
            for flow in dict.fromkeys(row["flow"] for row in flows)
            if (mine := [row for row in flows if (row["protocol"], row["flow"]) == (protocol, flow)])
        )
        return markdown_table(("protocol", "flow", "paths", *(column.head for column in self.columns)), rows)

    def _row(self, protocol: str, flow: str, rows: Sequence[FlowRow]) -> list[str]:
        paths = sorted({len((row["paths"] or "").split()) for row in rows})
        cells = [
            interval((row[column.metric] for row in rows), column.scale, column.digits)
            for column in self.columns
        ]
        return [f"`{protocol}`", flow, " to ".join(str(count) for count in paths), *cells]


def files() -> Iterator[str]:
    """Run the simulations; return how many files of many flows are complete, and how long they took."""
    flows = Simulation.load("demands", "1").run(FEW, seeds=SEEDS).flows
    rows = []
    for protocol in FEW:
        runs = [
            [row["completion_s"] for row in flows if (row["protocol"], row["seed"]) == (protocol, seed)]
            for seed in SEEDS
        ]
        complete = [sorted(time_s for time_s in run if time_s is not None) for run in runs]
        count = interval((len(times) for times in complete), digits=0)
        mean = interval((statistics.fmean(times) for times in complete), 1e3, 0)
        quantiles = (
            interval((times[int(share * (len(times) - 1))] for times in complete), 1e3, 0)
            for share in (0.5, 0.95, 0.99)
        )
        rows.append((f"`{protocol}`", f"{count} of {len(runs[0])}", mean, *quantiles))
    return markdown_table(("protocol", "complete", "mean, ms", "p50", "p95", "p99"), rows)


_TABLES = (
    Table("ring", "1", STEADY, (GOODPUT, *DELAYS)),
    Table("wan", "1", STEADY, (GOODPUT, *DELAYS)),
    Table("fat-tree", "1", STEADY, (GOODPUT, *DELAYS)),
    Table("bulk", "1", FEW, (COMPLETION,), None),
    Table("bulk", "2", FEW, (COMPLETION,), None),
    Table("web", "1", FEW, TRANSFERS),
    Table("onoff", "1", FEW, (GOODPUT, *DELAYS)),
)
TABLES = {table.name: table.lines for table in _TABLES} | {"demands 1": files}
