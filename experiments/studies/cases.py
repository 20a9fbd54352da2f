"""The cases of a study, as the simulator's descriptions."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import topologies
from experiments.engines.sim.description import describe
from experiments.engines.sim.routing import routes
from experiments.errors import ScenarioError
from experiments.model import overrides, scenario
from experiments.model.plan import RunPlan
from experiments.studies.schema import FromScenario, Level, Side, Study


def cases(study: Study) -> dict[str, dict[str, Any]]:
    """Return the description of each case by its name, without a seed: the names of its levels, in order.

    Raises:
        ScenarioError: a level changes what is not there, or a claim or cell names a case that is not made.
    """
    bases = _bases(study)
    made: dict[str, dict[str, Any]] = {}
    for base, levels in itertools.product(bases, itertools.product(*(axis.levels for axis in study.axes))):
        name = " ".join(filter(None, [base, *(level.name for level in levels)]))
        if study.only and not any(fnmatchcase(name, pattern) for pattern in study.only):
            continue
        description = copy.deepcopy(bases[base])
        for level in levels:
            _apply(study, level, description)
        made[name] = description
    _check_references(study, made)
    return made


def _bases(study: Study) -> dict[str, dict[str, Any]]:
    if study.base:
        return {"": {"format": 1, **study.base, "duration_s": study.duration_s}}
    return {name: _described(study, base) for name, base in study.scenario.items()}


def changed_scenario(study: Study, base: FromScenario) -> scenario.Scenario:
    """Return the scenario of a base, with its settings."""
    settings = {**base.settings, "duration_s": study.duration_s}
    return overrides.apply(scenario.load(base.scenario), settings, [base.case])


def _described(study: Study, base: FromScenario) -> dict[str, Any]:
    changed = changed_scenario(study, base)
    plan = RunPlan(
        scenario=changed,
        network=topologies.load(changed.network, variant=changed.variant),
        case_name=base.case,
        protocol=base.protocol,
        seed=0,
        duration_s=study.duration_s,
    )
    return describe(plan, routes(plan))


def _apply(study: Study, level: Level, description: dict[str, Any]) -> None:
    for key, value in level.set.items():
        *parents, last = key.split(".")
        try:
            target: Any = description
            for part in parents:
                target = _child(target, part)
            if isinstance(target, list):
                target[target.index(_child(target, last))] = value
            else:
                target[last] = value
        except (KeyError, IndexError, ValueError, TypeError):
            place = f"level {level.name}: {key}"
            raise ScenarioError(study.name, place, "the description has no such place") from None


def _child(target: Any, part: str) -> Any:
    """Return an element: of a list by its `name`, by its `ends` joined with a hyphen, or by number."""
    if isinstance(target, dict):
        return target.setdefault(part, {})
    for element in target:
        if isinstance(element, dict) and part in (element.get("name"), "-".join(element.get("ends", ()))):
            return element
    return target[int(part)]


def _check_references(study: Study, made: dict[str, dict[str, Any]]) -> None:
    for side, place in _references(study):
        for case in side.cases:
            if case not in made:
                raise ScenarioError(study.name, place, f"there is no case {case!r}; cases: {', '.join(made)}")
        if side.metric not in study.metrics:
            known = ", ".join(study.metrics)
            raise ScenarioError(study.name, place, f"there is no metric {side.metric!r}; metrics: {known}")


def _references(study: Study) -> Iterator[tuple[Side, str]]:
    """Return what the study's file speaks of, and where."""
    for cell in study.cells:
        yield cell.ours, f"cell {cell.table}/{cell.row}/{cell.column}"
    for number, claim in enumerate(study.claims, start=1):
        yield Side((), claim.by), f"claim {number}"
        for comparison in claim.comparisons() + study.without(claim):
            yield comparison.left, f"claim {number}"
            if comparison.right is not None:
                yield comparison.right, f"claim {number}"
    for name, metric in study.metrics.items():
        if metric.beside is not None:
            yield Side((), metric.beside), f"metrics.{name}"
