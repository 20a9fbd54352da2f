"""What `mstcp-lab solve` found, as tables and as one large document, in pieces for files of any size."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from experiments.routing.document import Solved, summary

FLOWS = (
    "flow",
    "source",
    "destination",
    "requested_bps",
    "admitted_bps",
    "admitted_share",
    "paths",
    "mean_delay_s",
)
PATHS = ("flow", "source", "destination", "requested_bps", "path", "rate_bps", "delay_s")
LINKS = ("from", "to", "capacity_bps", "load_bps", "utilisation", "delay_s")
FAILURES = ("kind", "name", "admitted_bps", "upper_bound_bps", "lost_bps", "cut_off_bps", "exact")
BACKUPS = (
    "flow",
    "path",
    "rate_bps",
    "delay_s",
    "backup",
    "backup_delay_s",
    "shared_links",
    "shared_nodes",
)


def flows_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every flow; an empty mean delay where it gets nothing."""

    def rows() -> Iterator[tuple[object, ...]]:
        for demand in solved.problem.demands:
            paths = solved.allocation.paths[demand.id]
            admitted_bps = solved.allocation.rate_bps(demand.id)
            share = min(1.0, admitted_bps / demand.rate_bps) if demand.rate_bps else 1.0
            delay_s: object = ""
            if admitted_bps:
                delay_s = sum(path.rate_bps * path.delay_s for path in paths) / admitted_bps
            ends = (demand.id, demand.source, demand.destination)
            yield (*ends, demand.rate_bps, admitted_bps, share, len(paths), delay_s)

    return _lines(FLOWS, rows())


def paths_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every path; a flow that gets nothing has one without a path."""

    def rows() -> Iterator[tuple[object, ...]]:
        for demand in solved.problem.demands:
            asked = (demand.id, demand.source, demand.destination, demand.rate_bps)
            for path in solved.allocation.paths[demand.id]:
                yield (*asked, "-".join(path.nodes), path.rate_bps, path.delay_s)
            if not solved.allocation.paths[demand.id]:
                yield (*asked, "", 0.0, "")

    return _lines(PATHS, rows())


def links_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every direction of a link."""
    loads_bps = solved.loads_bps()
    rows = (
        (
            edge.tail,
            edge.head,
            edge.capacity_bps,
            loads_bps[edge.id],
            loads_bps[edge.id] / edge.capacity_bps if edge.capacity_bps else "",
            edge.delay_s,
        )
        for edge in solved.problem.edges
    )
    return _lines(LINKS, rows)


def failures_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every failure, those that lose most first."""
    outcomes = [] if solved.survey is None else solved.survey.worst_first()
    rows = (
        (
            outcome.failure.kind,
            outcome.failure.name,
            outcome.admitted_bps,
            outcome.upper_bound_bps,
            outcome.lost_bps,
            outcome.cut_off_bps,
            "yes" if outcome.is_exact else "no",
        )
        for outcome in outcomes
    )
    return _lines(FAILURES, rows)


def backups_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every path in use whose backup is known; empty where there is none."""
    rows = (
        (
            backup.demand,
            "-".join(backup.path.nodes),
            backup.path.rate_bps,
            backup.path.delay_s,
            "-".join(backup.nodes),
            backup.delay_s if backup.nodes else "",
            " ".join(backup.shared_links),
            " ".join(backup.shared_nodes),
        )
        for backup in solved.backups
    )
    return _lines(BACKUPS, rows)


def _lines(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(row)
        if buffer.tell() > 1 << 16:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def allocation_json(solved: Solved) -> Iterator[str]:
    """Yield the document with every flow, its paths, and the load of every edge."""
    loads_bps = solved.loads_bps()
    head = {
        "format": 1,
        "network": solved.network.name,
        "notes": list(solved.notes),
        "summary": summary(solved),
    }
    yield json.dumps(head, indent=1, allow_nan=False)[:-2] + ',\n "flows": [\n'
    yield from _entries(_flow(solved, demand) for demand in solved.problem.demands)
    yield ' ],\n "links": [\n'
    yield from _entries(
        {
            "from": edge.tail,
            "to": edge.head,
            "capacity_bps": edge.capacity_bps,
            "load_bps": loads_bps[edge.id],
        }
        for edge in solved.problem.edges
    )
    yield " ]\n}\n"


def _flow(solved: Solved, demand: Any) -> dict[str, Any]:
    return {
        "flow": demand.id,
        "source": demand.source,
        "destination": demand.destination,
        "requested_bps": demand.rate_bps,
        "admitted_bps": solved.allocation.rate_bps(demand.id),
        "paths": [
            {"nodes": list(path.nodes), "rate_bps": path.rate_bps, "delay_s": path.delay_s}
            for path in solved.allocation.paths[demand.id]
        ],
    }


def _entries(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the entries of an array, one a line."""
    before = ""
    for entry in entries:
        yield before + "  " + json.dumps(entry, allow_nan=False)
        before = ",\n"
    yield "\n"
