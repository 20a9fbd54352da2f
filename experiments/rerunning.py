"""A job made of a results document alone, and whether its runs are those of the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from experiments.errors import ScenarioError
from experiments.model.job import Job
from experiments.model.own_files import digest
from experiments.model.problems import what_is_wrong
from experiments.model.results import OwnFile, Results, RunResult
from experiments.model.scenario import parse
from experiments.registry import extend
from topologies.model import Network


@dataclass(frozen=True)
class Rerun:
    """A job whose runs are those of a document, with a sentence for each thing that is not as it was.

    `folder` is where to make them, for methods that are named from there; None where it makes no difference.
    """

    job: Job
    folder: Path | None
    notes: list[str]


def rerun_of(results: Results, source: str, out: Path, given: Sequence[Path] = (), **options: Any) -> Rerun:
    """Return the job that a document is the result of; its extensions are loaded.

    `source` is the document's path, as sentences name it; extensions that are `given` are used instead of
    those of the same names; options are further fields of the job.

    Raises:
        ScenarioError: the document does not hold what it takes, or a file that it needs is not as it was.
    """
    files = results.environment.files
    extensions, notes = _extensions(files, source, given)
    extend(extensions)
    folder = _folder(files, source)
    scenario = parse(results.settings, f"{source}: settings")
    try:
        network = Network.model_validate(results.network)
    except ValidationError as error:
        raise ScenarioError(source, "network", what_is_wrong(error)) from None
    job = Job(
        engine=results.engine,
        scenario=scenario,
        network=network,
        variant=results.variant,
        overrides=results.overrides,
        cases=tuple(scenario.cases),
        protocols=tuple(results.asked.protocols),
        seeds=tuple(results.asked.seeds),
        duration_s=results.runs[0].duration_s if results.runs else scenario.duration_s,
        out=out.absolute(),
        extensions=tuple(dict.fromkeys([*extensions, *given])),
        **options,
    )
    return Rerun(job, folder, notes)


def _extensions(files: Sequence[OwnFile], source: str, given: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the extensions that a document needs, and a sentence for each that is not the same."""
    by_name = {path.name: path for path in given}
    paths, notes = [], []
    for file in files:
        if file.kind != "extension":
            continue
        path = by_name.get(file.name)
        if path is None:
            path = _unchanged(file, source, f"give it with --extend {file.name}")
        elif digest(path) != file.sha256:
            notes.append(f"{path} is not the {file.name} that {source} was made with: results may differ.")
        paths.append(path)
    return paths, notes


def _folder(files: Sequence[OwnFile], source: str) -> Path | None:
    """Return the folder from which the files of methods are named; None where they are found from here."""
    for file in files:
        if file.kind == "method" and (file.sha256 is None or digest(Path(file.name)) != file.sha256):
            path = _unchanged(file, source, f"put it there, or in this folder as {file.name}")
            return path.parents[len(Path(file.name).parts) - 1]
    return None


def _unchanged(file: OwnFile, source: str, remedy: str) -> Path:
    path = Path(file.path)
    now = digest(path)
    if now is not None and now == file.sha256:
        return path
    what = f"it needs the {file.kind} {file.name}, which"
    if now is None:
        raise ScenarioError(source, "", f"{what} is not at {path} any more: {remedy}")
    raise ScenarioError(source, "", f"{what} has changed at {path} since: {remedy}")


def differences(before: Results, after: Results, source: str) -> list[str]:
    """Return a sentence for each run that is not what it was; where a run was made does not count."""
    known = {_key(run): run for run in before.runs}
    sentences = []
    for run in after.runs:
        earlier = known.get(_key(run))
        place = "" if earlier is None else _difference(_content(earlier), _content(run))
        if place:
            name = f"Case {run.case} with {run.protocol}, seed {run.seed}"
            sentences.append(f"{name} is not as in {source}: {place}.")
    return sentences


def _key(run: RunResult) -> tuple[str, str, int]:
    return run.case, run.protocol, run.seed


def _content(run: RunResult) -> dict[str, Any]:
    return run.model_dump(mode="json", exclude={"environment"})


def _difference(before: Any, after: Any, place: str = "") -> str:
    """Return the first place where two documents differ, with both values; empty where nothing differs."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        pairs = [(str(key), before[key], after[key]) for key in before]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(str(index), *pair) for index, pair in enumerate(zip(before, after, strict=True))]
    else:
        return "" if before == after else f"{place} is {_short(after)} instead of {_short(before)}"
    return next(
        filter(None, (_difference(old, new, f"{place}.{key}".lstrip(".")) for key, old, new in pairs)), ""
    )


def _short(value: Any) -> str:
    return f"{len(value)} entries" if isinstance(value, dict | list) else repr(value)
