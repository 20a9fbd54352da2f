"""The folder of a sweep: `conditions.json` says how it is run, `points.jsonl` has a line a finished point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from experiments.errors import OutputError, ScenarioError
from experiments.model.atomic_files import output_errors
from experiments.model.data import Data
from experiments.scheduling.journal import Journal
from experiments.sweep.plan import Conditions, Point, Sweep

CONDITIONS = "conditions.json"
POINTS = "points.jsonl"


class PointResult(Data):
    """What a point found. Rates are goodput in bit/s over all flows, times seconds, missing values None.

    Flows are those between two nodes, admitted those that the simulation held; packets and bytes count from
    the start of the run on, received goodput and delay (from write to in-order read, weighted by bytes) in
    the measurement alone. `bytes_wrong` differ from what was written; `wall_s` and memory are those of the
    simulation's process.
    """

    point: Point
    flows: int
    flows_admitted: int
    paths: int
    requested_bps: float
    admitted_bps: float
    received_bps: float
    delay_mean_s: float | None
    bytes_written: int
    bytes_read: int
    bytes_wrong: int
    packets_sent: int
    packets_delivered: int
    packets_dropped: int
    packets_in_flight: int
    retransmits: int
    events: int
    wall_s: float
    peak_rss_bytes: int

    def row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        return {**self.point.model_dump(), **self.model_dump(exclude={"point"})}


class SweepStore:
    """Keeps the finished points; each is on the disk before the next is counted."""

    def __init__(self, folder: Path, conditions: Conditions, *, resume: bool) -> None:
        """Open a folder, which must be new unless a sweep is resumed.

        Raises:
            OutputError: It cannot be written, or holds a sweep already.
            ScenarioError: What is there is of other conditions, or no sweep.
        """
        self._points = folder / POINTS
        self._journal = Journal(self._points)
        self.finished: dict[Point, PointResult] = {}
        written = folder / CONDITIONS
        with output_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if written.exists():
                if not resume:
                    reason = "it holds a sweep already; --resume goes on with it"
                    raise OutputError(str(folder), reason)
                _check_same(written, conditions)
                self.finished = {result.point: result for result in _points_of(self._points, self._journal)}
            else:
                written.write_text(conditions.model_dump_json(indent=1) + "\n", encoding="utf-8")

    def add(self, result: PointResult) -> None:
        """Keep a finished point; OutputError if that fails."""
        self._journal.add(result.model_dump_json())
        self.finished[result.point] = result

    def results(self, sweep: Sweep) -> list[PointResult]:
        """Return the finished points of a sweep, in its order."""
        return [self.finished[point] for point in sweep.points() if point in self.finished]


def read_points(folder: Path) -> tuple[Conditions, list[PointResult]]:
    """Read a sweep's folder: conditions and finished points (ScenarioError: it holds none)."""
    points = folder / POINTS
    try:
        return _conditions_of(folder / CONDITIONS), _points_of(points, Journal(points))
    except OSError as error:
        raise ScenarioError(str(folder), "", f"cannot be read: {error.strerror}") from None


def _points_of(path: Path, journal: Journal) -> list[PointResult]:
    return [_point_of(line, path, number) for number, line in journal.lines()]


def _point_of(line: bytes, path: Path, number: int) -> PointResult:
    try:
        return PointResult.model_validate_json(line)
    except ValidationError:
        reason = "is not a point of a sweep; remove the line or choose another folder with --out"
        raise ScenarioError(str(path), f"line {number}", reason) from None


def _conditions_of(path: Path) -> Conditions:
    try:
        return Conditions.model_validate_json(path.read_bytes())
    except ValidationError:
        raise ScenarioError(str(path), "", "does not hold the conditions of a sweep") from None


def _check_same(written: Path, conditions: Conditions) -> None:
    before = _conditions_of(written)
    old, new = before.model_dump(), conditions.model_dump()
    for key in new:
        if old[key] != new[key]:
            reason = f"the sweep there was begun with {json.dumps(old[key])}, not {json.dumps(new[key])}"
            raise ScenarioError(str(written), key, reason)
