"""What every engine offers: one run of one case, with one protocol and one seed, into one result."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from experiments.model.events import Report
from experiments.model.plan import RunPlan
from experiments.model.results import Environment, RunResult


class Clock(enum.Enum):
    """What an engine's time is."""

    MACHINE = "machine"
    """The machine's: a run takes as long as it lasts, and one on a busy machine may not be valid."""
    VIRTUAL = "virtual"
    """Time of a kernel whose processes take none: the machine's load does not matter."""
    SIMULATED = "simulated"
    """A number in a model."""


@dataclass(frozen=True)
class Abilities:
    """What an engine is able to do; callers ask for this and not for its name."""

    clock: Clock
    protocols: tuple[str, ...] | None
    """Those it has; None for all."""
    drains: bool
    """Whether a run goes on until everything that was sent has arrived."""


class Engine(Protocol):
    """An engine runs plans, where it is: `experiments.places` says where that can be."""

    name: str
    abilities: Abilities
    most_at_once: int
    """How many runs one instance may be given at once, each by a thread."""

    def check(self, plans: list[RunPlan]) -> None:
        """Refuse what cannot be run, before anything is started (MissingRequirement: with the remedy)."""

    def run_case(self, plan: RunPlan, out: Path, report: Report) -> RunResult:
        """Run one plan; `out` is a folder for its logs (RunFailed: the run did not come to its end)."""

    def environment(self) -> Environment:
        """Describe where the last run was made; called after each."""

    def stop(self) -> None:
        """End the runs of other threads at once; called by an engine's user who is interrupted."""
