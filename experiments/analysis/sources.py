"""Results folders and sweeps as sources of samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.analysis.samples import SampleSource, Value, leaves
from experiments.analysis.tables import tables
from experiments.model.results import Results
from experiments.model.results_files import document_name, read_results
from experiments.sweep.store import CONDITIONS, read_points


def read_sources(paths: Sequence[Path]) -> tuple[list[SampleSource], list[str]]:
    """Read folders of `run` or `sweep`, and say what was left out (ScenarioError: one is neither)."""
    sources, notes = [], []
    for path in paths:
        if (path / CONDITIONS).exists():
            sources.append(_of_sweep(path))
            continue
        results = read_results(path)
        name = document_name(path)
        valid = [run for run in results.runs if run.valid]
        if valid and len(valid) < len(results.runs):
            notes.append(f"{name}: {len(results.runs) - len(valid)} runs are not valid and are left out.")
            results = results.model_copy(update={"runs": valid})
        elif not valid:
            notes.append(f"{name}: no run is valid; all are drawn.")
        sources.append(SampleSource(name, tables(results), dict(_settings(results))))
    return sources, notes


def _of_sweep(folder: Path) -> SampleSource:
    conditions, points = read_points(folder)
    rows = [point.row() for point in points]
    table = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return SampleSource(str(folder), {"points": table}, dict(_values(conditions.model_dump(mode="json"))))


def _settings(results: Results) -> Iterator[tuple[str, Value]]:
    yield from _values(results.settings)
    for link in results.network["links"]:
        properties = {key: value for key, value in link.items() if key != "ends"}
        yield from _values(properties, f"links.{'-'.join(link['ends'])}.")


def _values(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    for name, value in leaves(table, prefix):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        yield name, value if is_number else "default" if value is None else str(value)
