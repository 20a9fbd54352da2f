"""Results as the page reads them: an overview without series, and a run's series when they are wanted.

Read from the results document alone (`experiments.model.results`), so what the page shows is what programs
read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from experiments.model.job import Job
from experiments.model.results import Results, RunResult
from experiments.report.palette import PLOT_STYLES, protocol_styles
from topologies import Network, positions

PARTS = ("row", "flows", "links")


class NoSuchRun(Exception):
    """There is no result of that number (yet)."""


class OpenDocument(Protocol):
    """Results that a page can open."""

    def overview(self) -> dict[str, Any]:
        """Return all but the series."""

    def part(self, number: int, part: str) -> Any:
        """Return one of `PARTS` of a run, numbered from 1; NoSuchRun if there is none."""


class FinishedResults:
    """A results document."""

    def __init__(self, results: Results, source: str) -> None:
        self._results = results
        self._source = source

    def overview(self) -> dict[str, Any]:
        """Return all but the series."""
        results = self._results
        return _overview(
            results,
            source=self._source,
            scenario=results.scenario,
            network=network_of(Network.model_validate(results.network)),
            environments=[
                each.model_dump(mode="json", exclude={"simulations"})
                for each in (results.environment, *results.other_environments)
            ],
            valid=results.environment.valid,
            why=results.environment.why,
            looks=looks(run.protocol for run in results.runs),
            runs=[_row(number, run) for number, run in enumerate(results.runs, start=1)],
        )

    def part(self, number: int, part: str) -> Any:
        """Return a part of a run."""
        if not 1 <= number <= len(self._results.runs):
            raise NoSuchRun(number)
        return part_of(number, self._results.runs[number - 1], part)


class GrowingResults:
    """What a job has finished so far; the runs' numbers are the job's."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._numbers = range(1, len(job.plans()) + 1)
        self._rows: dict[int, tuple[int, dict[str, Any]]] = {}

    def overview(self) -> dict[str, Any]:
        """Return all but the series; what the machine was, the document alone has."""
        job = self._job
        return _overview(
            job,
            source=str(job.out),
            scenario=job.scenario.name,
            network=network_of(job.network),
            environments=[],
            valid=None,
            why=[],
            looks=looks(job.protocols),
            runs=[row for number in self._numbers if (row := self._row(number))],
        )

    def part(self, number: int, part: str) -> Any:
        """Return a part of a run."""
        run = self._job.finished(number) if number in self._numbers else None
        if run is None:
            raise NoSuchRun(number)
        return part_of(number, run, part)

    def _row(self, number: int) -> dict[str, Any] | None:
        """Return a run without its series, read again only if its file has changed."""
        path = self._job.result_path(number)
        if not path.exists():
            return None
        changed_ns = path.stat().st_mtime_ns
        known = self._rows.get(number)
        if known is None or known[0] != changed_ns:
            self._rows[number] = known = (changed_ns, self.part(number, "row"))
        return known[1]


def _overview(of: Results | Job, **fields: Any) -> dict[str, Any]:
    common = {"engine": of.engine, "variant": of.variant, "overrides": of.overrides}
    return {"kind": "results", **common, **fields}


def part_of(number: int, run: RunResult, part: str) -> Any:
    """Return one of `PARTS` of a run."""
    match part:
        case "flows":
            return [
                {
                    "flow": flow.flow,
                    "completions": flow.fct_s.quantiles if flow.fct_s else [],
                    **flow.series.model_dump(mode="json"),
                }
                for flow in run.flows
            ]
        case "links":
            return [link.model_dump(mode="json") for link in run.links]
        case _:
            return _row(number, run)


def _row(number: int, run: RunResult) -> dict[str, Any]:
    left_out: Any = {"flows": {"__all__": {"series": True, "fct_s": {"quantiles"}}}}
    left_out |= {"links": True, "evidence": True, "sysctls": True}
    return {"number": number, **run.model_dump(mode="json", exclude=left_out)}


def network_of(network: Network) -> dict[str, Any]:
    """Return a network as it is drawn: nodes where the report places them (y upwards), and links."""
    places = positions(network)
    kinds = {node.name: node.kind for node in network.nodes}
    return {
        "name": network.name,
        "nodes": [
            {"name": name, "kind": kinds[name], "x": places[name][0], "y": places[name][1]} for name in kinds
        ],
        "links": [
            {"a": link.ends[0], "b": link.ends[1], "rate_bps": link.rate_bps, "delay_us": link.delay_us}
            for link in network.links
        ],
    }


def looks(protocols: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return how each protocol is drawn: the number of its look in reports; the page has the colours.

    The page has no others, so that a look from elsewhere becomes the first that no protocol here has.
    """
    chosen = protocol_styles(protocols)
    free = [number for number, look in enumerate(PLOT_STYLES) if look not in chosen.values()] or [0]
    return {
        name: {"series": PLOT_STYLES.index(look) if look in PLOT_STYLES else free[0]}
        for name, look in chosen.items()
    }
