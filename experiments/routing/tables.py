"""What `mstcp-lab solve` found, as tables and as one large document, in pieces for files of any size."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from gomr import Demand

from experiments.routing.document import FlowRow, Solved, failure_row, summary

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
BACKUPS = ("flow", "path", "rate_bps", "delay_s", "backup", "backup_delay_s", "shared_links", "shared_nodes")
Cells = Iterator[tuple[object, ...]]


def flows_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every flow; an empty mean delay where it gets nothing."""
    rows = (
        (
            *_asked(row.demand),
            row.admitted_bps,
            row.share,
            len(row.paths),
            "" if row.delay_s is None else row.delay_s,
        )
        for row in solved.flows()
    )
    return _lines(FLOWS, rows)


def _asked(demand: Demand) -> tuple[object, ...]:
    return demand.id, demand.source, demand.destination, demand.rate_bps


def paths_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every path; a flow that gets nothing has one without a path."""

    def rows() -> Cells:
        for row in solved.flows():
            for path in row.paths:
                yield (*_asked(row.demand), "-".join(path.nodes), path.rate_bps, path.delay_s)
            if not row.paths:
                yield (*_asked(row.demand), "", 0.0, "")

    return _lines(PATHS, rows())


def links_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every direction of a link."""

    def rows() -> Cells:
        for edge in solved.problem.edges:
            load_bps = solved.loads_bps[edge.id]
            used = load_bps / edge.capacity_bps if edge.capacity_bps else ""
            yield edge.tail, edge.head, edge.capacity_bps, load_bps, used, edge.delay_s

    return _lines(LINKS, rows())


def failures_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every failure, those that lose most first."""
    outcomes = [] if solved.survey is None else solved.survey.worst_first()
    rows = ((*failure_row(outcome).values(), "yes" if outcome.is_exact else "no") for outcome in outcomes)
    return _lines(FAILURES, rows)


def backups_csv(solved: Solved) -> Iterator[str]:
    """Yield a line for every path in use whose backup is known; empty where there is none."""

    def rows() -> Cells:
        for backup in solved.backups:
            path, delay_s = backup.path, backup.delay_s if backup.nodes else ""
            shared = (" ".join(backup.shared_links), " ".join(backup.shared_nodes))
            nodes = ("-".join(path.nodes), path.rate_bps, path.delay_s, "-".join(backup.nodes))
            yield (backup.demand, *nodes, delay_s, *shared)

    return _lines(BACKUPS, rows())


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
    loads_bps = solved.loads_bps
    head = {
        "format": 1,
        "network": solved.network.name,
        "notes": list(solved.notes),
        "summary": summary(solved),
    }
    yield json.dumps(head, indent=1, allow_nan=False)[:-2] + ',\n "flows": [\n'
    yield from _entries(_flow(row) for row in solved.flows())
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


def _flow(row: FlowRow) -> dict[str, Any]:
    return {
        **dict(zip(FLOWS, _asked(row.demand), strict=False)),
        "admitted_bps": row.admitted_bps,
        "paths": [
            {"nodes": list(path.nodes), "rate_bps": path.rate_bps, "delay_s": path.delay_s}
            for path in row.paths
        ],
    }


def _entries(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the entries of an array, one a line."""
    before = ""
    for entry in entries:
        yield before + "  " + json.dumps(entry, allow_nan=False)
        before = ",\n"
    yield "\n"
