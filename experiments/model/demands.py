"""Files of demands: many flows, one in a row. docs/scenarios.md describes the format.

Rows are CSV: `src,dst,rate_bps,size_bytes,start_s` in any order, under a header.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import ValidationError

from experiments.errors import DemandError
from experiments.model.data import Data
from experiments.model.problems import first_problem
from experiments.model.scenario import Case, Demands, Flow, Scenario
from experiments.model.settings import NodeName, Rate, Seconds
from experiments.workloads import Bulk, Cbr, Workload
from experiments.workloads.base import Size

GROUP = "demands"
MAX_ROWS = 10_000


class Demand(Data):
    """One row: a file of `size_bytes`, or a constant bit rate of `rate_bps`.

    With both, the rate is what a controller is asked for.
    """

    src: NodeName
    dst: NodeName
    rate_bps: Rate | None = None
    size_bytes: Size | None = None
    start_s: Seconds = 0.0


def with_files(scenario: Scenario, folder: Path, hosts: Collection[str], cases: Collection[str]) -> Scenario:
    """Return the scenario with what its files hold, so that a job stands alone: traces, and demands as flows.

    Raises:
        ScenarioError: a file that cannot be read, or a row that is wrong; it names the file and the row.
    """
    traces = tuple(each.model_copy(update={"trace": each.trace.read(folder)}) for each in scenario.traces)
    return expand(scenario.model_copy(update={"traces": traces}), folder, hosts, cases)


def expand(scenario: Scenario, folder: Path, hosts: Collection[str], cases: Collection[str]) -> Scenario:
    """Return the scenario with the demands of some cases as flows `d1`, `d2`, ... beside their own.

    Raises:
        DemandError: a file that cannot be read, or a row that is wrong; it names the file and the row.
    """
    changed = dict(scenario.cases)
    for name in cases:
        case = scenario.case(name)
        if case.demands is not None:
            flows = read(folder / case.demands.file, case.demands, hosts)
            taken = sorted(set(flows) & set(case.flows))
            if taken:
                raise DemandError(
                    case.demands.file, "", f"flow {taken[0]} of case {name} has a name of its rows"
                )
            # Made from its data, so that what holds between flows is checked again.
            changed[name] = Case.model_validate(
                {**case.model_dump(exclude={"flows"}), "flows": {**case.flows, **flows}}
            )
    return scenario.model_copy(update={"cases": changed})


def read(path: Path, settings: Demands, hosts: Collection[str]) -> dict[str, Flow]:
    """Return the flows of a file by name (DemandError: it cannot be read, or a row is wrong)."""
    flows = {}
    for number, (place, row) in enumerate(_rows(path), start=1):
        if number > MAX_ROWS:
            raise DemandError(path.name, place, f"more than {MAX_ROWS} rows are too many for a run")
        flows[f"d{number}"] = _flow(path.name, place, row, settings, hosts)
    if not flows:
        raise DemandError(path.name, "", "it holds no demand")
    return flows


def _flow(source: str, place: str, row: object, settings: Demands, hosts: Collection[str]) -> Flow:
    try:
        demand = Demand.model_validate(row)
    except ValidationError as error:
        key, reason = first_problem(error, Demand)
        raise DemandError(source, place, f"{key}: {reason}" if key else reason) from None
    for host in (demand.src, demand.dst):
        if host not in hosts:
            raise DemandError(
                source, place, f"the network has no host {host!r}; its hosts are {', '.join(hosts)}"
            )
    workload: Workload = Cbr() if demand.size_bytes is None else Bulk(size_bytes=demand.size_bytes)
    rate_bps = demand.rate_bps if demand.rate_bps is not None else settings.requested_bps
    if rate_bps is None or (demand.rate_bps is None and demand.size_bytes is None):
        reason = "it needs rate_bps, or size_bytes and a requested_bps of the scenario's demands for all rows"
        raise DemandError(source, place, reason)
    try:
        return Flow(
            src=demand.src,
            dst=demand.dst,
            requested_bps=rate_bps,
            workload=workload,
            start_s=demand.start_s,
            group=GROUP,
        )
    except ValidationError as error:
        raise DemandError(source, place, first_problem(error)[1]) from None


def _rows(path: Path) -> Iterator[tuple[str, object]]:
    """Yield each row's place and data."""
    source = path.name
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DemandError(str(path), "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DemandError(source, "", f"is not UTF-8: {error}") from None
    lines = {
        number: line
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip(" ,\t") and not line.lstrip().startswith("#")
    }
    numbers = [0, *lines]
    reader = csv.DictReader(lines.values(), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            place = f"line {numbers[reader.line_num]}"
            if None in row or None in row.values():
                raise DemandError(source, place, "it has another number of values than the header")
            # An empty cell stands for no value.
            yield place, {key.strip(): _number(cell) for key, cell in row.items() if cell.strip()}
    except csv.Error as error:
        raise DemandError(source, f"line {numbers[reader.line_num]}", f"is not CSV: {error}") from None


def _number(text: str) -> float | str:
    """Return a number for what is one: `2e6` is a size too."""
    try:
        return float(text)
    except ValueError:
        return text.strip()
