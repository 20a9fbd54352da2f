"""A job: all runs of one call, and where each of them leaves its result."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from experiments.errors import ScenarioError
from experiments.model.data import Data
from experiments.model.plan import RunPlan
from experiments.model.problems import what_is_wrong
from experiments.model.results import RunResult
from experiments.model.scenario import Scenario
from experiments.registry import extend
from topologies.model import Network

JOB_FILE = "job.json"
RETRY_LIMIT = 10
PARALLEL_LIMIT = 256


class Job(Data):
    """All runs of one call, in order; what a worker is given."""

    engine: str
    scenario: Scenario
    network: Network
    variant: str | None
    overrides: dict[str, Any]
    cases: tuple[str, ...]
    protocols: tuple[str, ...]
    seeds: tuple[int, ...]
    duration_s: float
    out: Path
    retries: int = Field(default=0, ge=0, le=RETRY_LIMIT)
    """How often an invalid run is rerun."""
    parallel: int | None = Field(default=None, ge=1, le=PARALLEL_LIMIT)
    """How many runs are made at once, where the engine can; None for one per core."""
    extensions: tuple[Path, ...] = ()
    """Files that add what this package does not have (`experiments.registry`)."""
    only: int | None = Field(default=None, ge=1)
    """The number of the one run that a worker is to make; None for all."""

    @model_validator(mode="before")
    @classmethod
    def _load_extensions(cls, data: Any) -> Any:
        """Load what a job of another process, or of another day, was given: its workloads may be among it."""
        if isinstance(data, dict):
            extend(data.get("extensions", ()))
        return data

    def plans(self) -> list[RunPlan]:
        """Return the runs: cases, then protocols, then seeds."""
        return [
            RunPlan(
                scenario=self.scenario,
                network=self.network,
                case_name=case,
                protocol=protocol,
                seed=seed,
                duration_s=self.duration_s,
            )
            for case, protocol, seed in itertools.product(self.cases, self.protocols, self.seeds)
        ]

    def pending(self) -> list[tuple[int, RunPlan]]:
        """Return the runs that OUT has no valid result of, with their numbers from 1."""
        numbered = enumerate(self.plans(), start=1)
        return [
            (number, plan)
            for number, plan in numbered
            if self.only in (None, number) and not ((result := self.finished(number)) and result.valid)
        ]

    def finished(self, number: int) -> RunResult | None:
        """Return what OUT has of a run, valid or not."""
        path = self.result_path(number)
        return RunResult.model_validate_json(path.read_text()) if path.exists() else None

    def result_path(self, number: int) -> Path:
        """Return where the result of a run lies."""
        return self.out / "runs" / f"{number:03}.json"

    def environment_path(self, number: int) -> Path:
        """Return where a run says on what machine it was made."""
        return self.out / "environments" / f"{number:03}.json"


def begun(out: Path) -> Job:
    """Return the job whose results are in a folder; ScenarioError if there is none."""
    path = out / JOB_FILE
    try:
        job = Job.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(str(path), "", f"cannot be read ({error.strerror}): no run began here") from None
    except ValidationError as error:
        reason = f"is not a job of this version: {what_is_wrong(error)}"
        raise ScenarioError(str(path), "", reason) from None
    return job.model_copy(update={"out": out.absolute()})
