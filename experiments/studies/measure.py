"""Runs the cases of a study with all seeds, and takes its metrics."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from experiments.engines.sim.process import Processes, SimulationFailed
from experiments.engines.together import run_together
from experiments.errors import RunFailed, ScenarioError
from experiments.studies.cases import cases
from experiments.studies.schema import Study

Measured = Mapping[tuple[str, str], list[float]]
"""Of each case and metric, a figure for each seed, in the order of the seeds."""


def measure(study: Study, seeds: int) -> Measured:
    """Run a study; the result does not depend on how many runs are made at once.

    Args:
        study: what is run.
        seeds: 1 to this number, each with every case.

    Raises:
        ScenarioError: a case or metric is not what the simulator takes or gives.
        RunFailed: a run did not come to its end.
    """
    plans = [(case, seed, found) for case, found in cases(study).items() for seed in range(1, seeds + 1)]
    processes = Processes()

    def simulate(_: int, plan: tuple[str, int, dict[str, Any]]) -> dict[str, float]:
        case, seed, description = plan
        try:
            found = processes.run({**description, "seed": seed}).found
        except SimulationFailed as error:
            raise RunFailed(f"Study {study.name}, case {case}, seed {seed}", str(error)) from error
        return {name: _figure(study, name, found) for name in study.metrics}

    results: dict[int, dict[str, float]] = {}
    workers = len(os.sched_getaffinity(0))
    with closing(run_together(plans, simulate, workers=workers, stop=processes.stop)) as ending:
        for number, _, future in ending:
            results[number] = future.result()
    measured: dict[tuple[str, str], list[float]] = {}
    for number, (case, _, _) in enumerate(plans):
        for name, value in results[number].items():
            measured.setdefault((case, name), []).append(value)
    return measured


def _figure(study: Study, name: str, found: dict[str, Any]) -> float:
    """Return a metric of a run: 0 where nothing was counted."""
    metric = study.metrics[name]
    value: Any = found
    try:
        for part in metric.of.split("."):
            value = _step(value, part)
    except (KeyError, IndexError, ValueError, TypeError):
        raise ScenarioError(study.name, f"metrics.{name}", f"the results have no {metric.of}") from None
    if isinstance(value, list):
        value = sum(value)
    return float(value or 0.0) * metric.scale


def _step(value: Any, part: str) -> Any:
    """Go to a part of the results: a key, an element by name or number, or of all elements (`*`)."""
    if isinstance(value, dict):
        return value[part]
    if part == "*":
        return value
    if all(isinstance(element, dict) for element in value):
        for element in value:
            if part in (element.get("flow"), element.get("link")):
                return element
        if not part.isdigit():
            return [element[part] for element in value]
    return value[int(part)]
