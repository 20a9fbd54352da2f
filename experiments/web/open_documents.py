"""Opens what `mstcp-lab browse` is given: results of runs, folders of such folders, and sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from experiments.errors import ScenarioError
from experiments.model.data import Data
from experiments.model.problems import what_is_wrong
from experiments.model.results_files import RESULTS_FILE, document_name, read_results
from experiments.sweep.plan import Sweep
from experiments.sweep.store import PointResult
from experiments.sweep.summary import SweepRow
from experiments.web.documents import FinishedResults, NoSuchRun, OpenDocument, looks

SWEEP = "sweep.json"
SOLUTION = "solution.html"
MAX_FILES = 50
"""Documents shown of a folder that has none itself, at most."""


def open_documents(path: Path) -> list[OpenDocument]:
    """Open a document, a folder with one, or all below a folder without (ScenarioError: there is none)."""
    if path.is_dir() and not (path / RESULTS_FILE).exists():
        files = list(_below(path))
        if files:
            return [_open(file) for file in files]
        if (path / SOLUTION).exists():
            reason = f"is what `mstcp-lab solve` wrote, which has no runs: open its {SOLUTION} in a browser"
            raise ScenarioError(str(path), "", reason)
    return [_open(path)]


def _below(folder: Path) -> Iterator[Path]:
    if (folder / SWEEP).exists():
        yield folder / SWEEP
        return
    depths = ("*", "*/*")
    files = sorted(
        f for depth in depths for name in (RESULTS_FILE, SWEEP) for f in folder.glob(f"{depth}/{name}")
    )
    if len(files) > MAX_FILES:
        reason = f"holds {len(files)} folders with results, and a page shows {MAX_FILES}: name some of them"
        raise ScenarioError(str(folder), "", reason)
    yield from files


def _open(path: Path) -> OpenDocument:
    if path.name == SWEEP:
        return FinishedSweep(path)
    return FinishedResults(read_results(path), document_name(path))


class _Document(Data):
    """As `experiments.sweep.summary.document` makes it."""

    format: int
    sweep: Sweep
    summary: list[SweepRow]
    points: list[PointResult]


class FinishedSweep:
    """The document of a sweep (ScenarioError: it is none)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._document = _Document.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ScenarioError(str(path), "", f"cannot be read: {error.strerror}") from None
        except ValidationError as error:
            reason = f"is not the document of a sweep: {what_is_wrong(error)}"
            raise ScenarioError(str(path), "", reason) from None

    def overview(self) -> dict[str, Any]:
        """Return its conditions, and means over the seeds for each load and protocol."""
        sweep = self._document.sweep
        return {
            "kind": "sweep",
            "source": str(self._path.parent),
            "scenario": Path(sweep.conditions.network).stem,
            "engine": "sim",
            "conditions": sweep.conditions.model_dump(mode="json"),
            "seeds": sweep.seeds,
            "looks": looks(sweep.protocols),
            "rows": [asdict(row) for row in self._document.summary],
        }

    def part(self, number: int, part: str) -> Any:
        """Refuse: a sweep keeps nothing of a run but its figures."""
        raise NoSuchRun(number, part)
