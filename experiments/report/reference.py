"""The paper's figures as data (`experiments/reference/table1.toml`), to stand beside ours."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path

from pydantic import Field

from experiments.model.data import Data
from topologies import toml

REFERENCE = Path(__file__).parents[1] / "reference" / "table1.toml"


class ReferenceRow(Data):
    """One line of the paper's table."""

    case: str
    flow: str
    protocol: str
    requested_bps: float = Field(gt=0)
    goodput_bps: float
    goodput_ratio: float | None = None
    """Received over requested goodput as printed, from figures with more digits than the printed ones."""
    delay_mean_s: float
    doubtful: str | None = None
    """Why nothing reproduces the mean delay; None where something does."""


class Reference(Data):
    """A published table; `scenario` is the name of the scenario file that repeats its experiment."""

    format: int
    scenario: str
    source: str
    row: tuple[ReferenceRow, ...]

    @cached_property
    def _rows(self) -> dict[tuple[str, str, str], ReferenceRow]:
        return {(row.case, row.flow, row.protocol): row for row in self.row}

    def find(self, case: str, flow: str, protocol: str) -> ReferenceRow | None:
        """Return the row of a case's flow with a protocol, or None if the table has no such row."""
        return self._rows.get((case, flow, protocol))


@cache
def load_reference() -> Reference:
    """Read the table of published figures."""
    return Reference.model_validate(toml.loads(REFERENCE.read_text(encoding="utf-8")))


def reference_for(scenario_file: str) -> Reference | None:
    """Return the published table that a scenario file repeats, or None if it repeats none."""
    reference = load_reference()
    return reference if reference.scenario == scenario_file else None
