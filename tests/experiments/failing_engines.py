"""An extension for tests: an engine for each place, whose runs fail in the way that their seed stands for."""

from __future__ import annotations

import os
from pathlib import Path

from experiments import environment
from experiments.engines import EngineEntry, register
from experiments.engines.base import Abilities, Clock
from experiments.errors import RunFailed
from experiments.model.events import Report
from experiments.model.plan import RunPlan
from experiments.model.results import Environment, RunResult
from experiments.places.in_process import InProcess
from experiments.places.namespaces import Namespaces
from experiments.places.virtual.place import VirtualKernel


class NeedsMore(Exception):
    """Has no text."""


class FailingEngine:
    """Seed 1: an error without a text; 2: a failure without a reason; 3: a full disk; 4: the process dies."""

    name = "failing"
    abilities = Abilities(clock=Clock.SIMULATED, protocols=None, drains=False)
    most_at_once = 1

    def check(self, plans: list[RunPlan]) -> None:
        """Accept all."""

    def stop(self) -> None:
        """Do nothing."""

    def environment(self) -> Environment:
        """Describe this machine."""
        return environment.describe(link_backend=None, datapath=None, simulated=True)

    def run_case(self, plan: RunPlan, out: Path, report: Report) -> RunResult:
        """Fail."""
        del report
        match plan.seed:
            case 1:
                raise NeedsMore
            case 2:
                raise RunFailed(plan.title, "")
            case 3:
                with (out / "much.log").open("wb") as file:
                    for _ in range(1 << 8):
                        file.write(bytes(1 << 20))
        os._exit(7)


for place in (InProcess, Namespaces, VirtualKernel):
    register(EngineEntry(f"failing-{place.__name__}", lambda _: FailingEngine(), place))
