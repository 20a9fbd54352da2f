"""What every engine offers: one run of one case, with one protocol and one seed, into one result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from experiments.results import Environment, RunResult
from experiments.scenario import Case, Scenario
from topologies.model import Network

Event: TypeAlias = dict[str, Any]
Report: TypeAlias = Callable[[Event], None]
"""Takes progress: `{"event": "phase", "text": ...}`, `{"event": "measuring", "seconds": ...}` and more."""


class RunPlan(BaseModel):
    """One run: a case of a scenario on its network with one protocol and one seed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: Scenario
    network: Network
    case_name: str
    protocol: str
    seed: Annotated[int, Field(ge=0, lt=1 << 32)]
    duration_s: Annotated[float, Field(gt=0)]

    @property
    def case(self) -> Case:
        """The case that is run."""
        return self.scenario.case(self.case_name)

    @property
    def label(self) -> str:
        """The run's name in sentences, as `scenario 1 with mstcp, seed 1`."""
        return f"scenario {self.case_name} with {self.protocol}, seed {self.seed}"

    @property
    def slug(self) -> str:
        """The run's name in file names, as `1-mstcp-s1`."""
        return f"{self.case_name}-{self.protocol}-s{self.seed}"


class Engine(Protocol):
    """An engine runs plans. `sandboxed` engines run in a worker with namespaces of its own."""

    name: str
    description: str
    sandboxed: bool
    protocols: tuple[str, ...] | None
    """Those it has; None for all."""
    workers: int
    """How many runs it may be given at once, each by a thread."""

    def check(self, plans: list[RunPlan]) -> None:
        """Refuse what this machine cannot run; called before anything is started.

        Raises:
            MissingRequirement: with the remedy.
        """

    def run_case(self, plan: RunPlan, out: Path, report: Report) -> RunResult:
        """Run one plan; `out` is a folder for its logs.

        Raises:
            RunFailed: the run did not come to its end.
        """

    def environment(self) -> Environment:
        """Describe where the runs were made; called after the last one."""

    def stop(self) -> None:
        """End the runs of other threads at once; called by an engine's user who is interrupted."""
