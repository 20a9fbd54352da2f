"""Table I of the paper, row by row: as printed, as ns-3 has it, and as the simulator has it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from experiments.analysis.statistics import Estimate
from experiments.model.results import Results
from experiments.report.reference import ReferenceRow, load_reference
from experiments.report.summary import FlowSummary, summarise

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NS3_REFERENCE = Path(__file__).parents[1] / "reference" / "ns3-butterfly.toml"
PAPER_DURATION_S = 120.0


class Ns3Row(BaseModel):
    """A row of the table in ns-3, on one variant of the network; means over its seeds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    variant: str
    case: str
    flow: str
    protocol: str
    goodput_bps: float = Field(gt=0)
    delay_mean_s: float = Field(gt=0)
    delay_range_s: tuple[float, float] | None = None
    """The smallest and the largest mean over the seeds; None where they hardly differ."""


class Ns3Reference(BaseModel):
    """All rows."""

    model_config = ConfigDict(extra="forbid")

    format: int
    scenario: str
    source: str
    row: tuple[Ns3Row, ...]


@dataclass(frozen=True)
class Row:
    """One flow with one protocol: the paper's figures, ns-3's and ours."""

    paper: ReferenceRow
    ns3: Ns3Row
    flow: FlowSummary

    @property
    def goodput_bps(self) -> Estimate:
        """Our goodput over the seeds."""
        return self.flow.goodput_bps

    @property
    def delay_mean_s(self) -> Estimate | None:
        """Our mean delay over the seeds; None where nothing arrived."""
        return self.flow.delay_mean_s

    @property
    def goodput_difference(self) -> float:
        """Of ours to ns-3's, relative to the latter."""
        return self.goodput_bps.mean / self.ns3.goodput_bps - 1

    @property
    def delay_difference(self) -> float | None:
        """Of our mean delay to ns-3's, relative to the latter."""
        mean = self.delay_mean_s
        return None if mean is None else mean.mean / self.ns3.delay_mean_s - 1

    @property
    def name(self) -> str:
        """As `2.1 mstcp`: case, flow and protocol."""
        return f"{self.paper.case}.{self.paper.flow} {self.paper.protocol}"


@dataclass(frozen=True)
class Reproduction:
    """The table by variant of the network, in the paper's order; `results` are the documents."""

    rows: Mapping[str, Sequence[Row]]
    results: Mapping[str, Results]

    @property
    def seeds(self) -> int:
        """How many seeds each cell has."""
        return len({run.seed for results in self.results.values() for run in results.runs})

    @property
    def duration_s(self) -> float:
        """Simulated seconds of each run."""
        return max(run.duration_s for results in self.results.values() for run in results.runs)

    @property
    def is_the_papers(self) -> bool:
        """Whether the runs have the paper's length; the random walks of full links depend on it."""
        return self.duration_s == PAPER_DURATION_S


@lru_cache(maxsize=1)
def load_ns3() -> Ns3Reference:
    """Read ns-3's figures."""
    return Ns3Reference.model_validate(tomllib.loads(NS3_REFERENCE.read_text(encoding="utf-8")))


def reproduce(results: Mapping[str, Results]) -> Reproduction:
    """Set documents beside the paper's table and ns-3's; flows that no run has are left out.

    Args:
        results: by variant of the butterfly.
    """
    ns3 = {(row.variant, row.case, row.flow, row.protocol): row for row in load_ns3().row}
    table: dict[str, list[Row]] = {}
    for variant, document in results.items():
        ours = {
            (flow.case, flow.flow, flow.protocol): flow
            for case in summarise(document)
            for group in case.flows.values()
            for flow in group
        }
        table[variant] = [
            Row(paper, ns3[variant, paper.case, paper.flow, paper.protocol], ours[key])
            for paper in load_reference().row
            if (key := (paper.case, paper.flow, paper.protocol)) in ours
        ]
    return Reproduction(table, dict(results))
