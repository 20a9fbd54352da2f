"""Runs the cases of a study with all seeds, and takes its metrics."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netsim_native as sim

from experiments.engines.sim.methods import load
from experiments.engines.sim.process import SimulationFailed
from experiments.engines.thread_pool import run_together
from experiments.errors import OutputError, RunFailed, ScenarioError
from experiments.model.atomic_files import output_errors
from experiments.scheduling.journal import Journal
from experiments.scheduling.simulator import Simulator
from experiments.studies.cases import cases
from experiments.studies.schema import Study

Measured = Mapping[tuple[str, str], list[float]]
"""A figure for each case, metric and seed, in the order of the seeds."""

RUNS = "runs.jsonl"


@dataclass(frozen=True)
class Planned:
    """One run: a case of a study with a seed."""

    study: Study
    case: str
    seed: int
    description: dict[str, Any]

    @property
    def label(self) -> str:
        """The run in words."""
        return f"Study {self.study.name}, case {self.case}, seed {self.seed}"

    @property
    def key(self) -> str:
        """What tells it from any run that is not the same, in a journal."""
        metrics = {name: metric.model_dump(exclude={"kernel"}) for name, metric in self.study.metrics.items()}
        text = json.dumps([self.study.name, self.case, self.seed, self.description, metrics], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def plan(study: Study, seeds: int) -> list[Planned]:
    """Return the runs of a study, each case with each seed (ScenarioError: the simulator refuses one)."""
    planned = []
    for case, description in cases(study).items():
        try:
            sim.check(json.dumps(description), load)
        except sim.InvalidDescription as error:
            place, reason = error.args
            raise ScenarioError(
                study.name, ": ".join(filter(None, [f"case {case}", place])), reason
            ) from None
        planned += [Planned(study, case, seed, {**description, "seed": seed}) for seed in range(1, seeds + 1)]
    return planned


def run(
    studies: Sequence[Study],
    seeds: int,
    simulator: Simulator,
    *,
    keep: StudyStore | None = None,
    begin: Callable[[int], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
) -> list[Measured]:
    """Return the figures of studies, whose cases are all run with the seeds 1 to `seeds`.

    `keep` has what was finished earlier, and keeps what finishes; `begin` is told how many runs are to be
    made, `report` of each that has ended.

    Raises:
        ScenarioError: a case or metric is not what the simulator takes or gives.
        RunFailed: a run did not come to its end.
        OutputError: what finished cannot be kept.
    """
    planned = [plan(study, seeds) for study in studies]
    store = StudyStore(None) if keep is None else keep

    def simulate(one: Planned) -> dict[str, float]:
        try:
            document = simulator.run(one.description).document
        except SimulationFailed as error:
            raise RunFailed(one.label, str(error)) from error
        return {name: _figure(one.study, name, document) for name in one.study.metrics}

    waiting = [one for runs in planned for one in runs if not store.has(one)]
    begin(len(waiting))
    with run_together(waiting, simulate, workers=simulator.at_once, stop=simulator.stop) as ending:
        for _, one, future in ending:
            store.add(one, future.result())
            report(one.label)
    return [_measured(runs, store) for runs in planned]


def _measured(planned: Sequence[Planned], store: StudyStore) -> Measured:
    measured: dict[tuple[str, str], list[float]] = {}
    for one in planned:
        for name, value in store.figures(one).items():
            measured.setdefault((one.case, name), []).append(value)
    return measured


class StudyStore:
    """The figures of finished runs, in memory and in a folder's `runs.jsonl`."""

    def __init__(self, folder: Path | None, *, resume: bool = False) -> None:
        """Open a folder, which must have no runs unless they are resumed.

        Raises:
            OutputError: it cannot be written, or holds runs already.
            ScenarioError: what it holds are no runs of a study.
        """
        self._figures: dict[str, dict[str, float]] = {}
        self._journal: Journal | None = None
        if folder is None:
            return
        with output_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        path = folder / RUNS
        if path.exists() and not resume:
            raise OutputError(str(folder), "it holds runs of a study already; --resume goes on with them")
        self._journal = Journal(path)
        for number, line in self._journal.lines():
            key, figures = _entry(line, f"{path}, line {number}")
            self._figures[key] = figures

    def has(self, run: Planned) -> bool:
        """Return whether a run is finished."""
        return run.key in self._figures

    def add(self, run: Planned, figures: dict[str, float]) -> None:
        """Keep a finished run; OutputError if that fails."""
        if self._journal is not None:
            names = {"study": run.study.name, "case": run.case, "seed": run.seed}
            self._journal.add(json.dumps({"key": run.key, **names, "figures": figures}))
        self._figures[run.key] = figures

    def figures(self, run: Planned) -> dict[str, float]:
        """Return the figures of a finished run."""
        return self._figures[run.key]


def _entry(line: bytes, place: str) -> tuple[str, dict[str, float]]:
    """Return key and figures of a line of the journal; ScenarioError if it has none."""
    try:
        entry = json.loads(line)
        return entry["key"], {name: float(value) for name, value in entry["figures"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ScenarioError(place, "", "is not a run of a study; remove the line") from None


def _figure(study: Study, name: str, document: dict[str, Any]) -> float:
    """Return a metric of a run: 0 where nothing was counted, or another protocol has it."""
    metric = study.metrics[name]
    try:
        value = figure_at(document, metric.of)
    except (KeyError, IndexError, ValueError, TypeError):
        if metric.optional:
            return 0.0
        raise ScenarioError(study.name, f"metrics.{name}", f"the results have no {metric.of}") from None
    if isinstance(value, list):
        value = sum(value)
    return float(value or 0.0) * metric.scale


def figure_at(document: Any, place: str) -> Any:
    """Return what results have at a place; KeyError, IndexError, ValueError or TypeError if it is none."""
    for part in place.split("."):
        document = _step(document, part)
    return document


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
