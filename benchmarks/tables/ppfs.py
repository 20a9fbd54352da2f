"""docs/ppfs.md: what the kernel's TCP makes of split packets, by the counters of README's runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.pages import DOCS, markdown_table
from experiments.model.results_files import read_results
from experiments.report.recovery import RECOVERIES, REORDERED, UNDONE, mean_count

from .cells import interval

PAGE = "ppfs.md"
DOCUMENT = DOCS / "results" / "butterfly.json"

HEAD = ("case, flow", "paths", "asked", "goodput", "seeds", "resent", "recoveries", "undone", "reordering")

Counters = Mapping[str, int]


def recoveries() -> Iterator[str]:
    """Return goodput, and what the sender took for losses, from the kept document."""
    runs = [run for run in read_results(DOCUMENT).model_dump()["runs"] if run["protocol"] == "ppfs"]
    rows = []
    for case in dict.fromkeys(run["case"] for run in runs):
        mine = [run for run in runs if run["case"] == case and run["valid"]]
        for index in range(len(mine[0]["flows"])):
            flows, senders = [run["flows"][index] for run in mine], [_sender(run, index) for run in mine]
            rows.append(_row(case, flows, senders))
    return markdown_table(HEAD, rows)


TABLES = {"ppfs tcp": recoveries}


def _sender(run: Mapping[str, Any], index: int) -> Counters:
    counters: Counters = run["evidence"]["hosts"][run["flows"][index]["src"]]
    return counters


def _row(case: str, flows: Sequence[Mapping[str, Any]], senders: Sequence[Counters]) -> list[str]:
    goodputs = [flow["goodput_bps"] for flow in flows]
    again = statistics.fmean(each.get("TcpRetransSegs", 0) / each["TcpOutSegs"] for each in senders)
    return [
        f"{case}, {flows[0]['flow']}",
        str(len(flows[0]["allocated"])),
        f"{flows[0]['requested_bps'] / 1e6:.2f}",
        interval(goodputs, 1e-6),
        " ".join(f"{goodput / 1e6:.2f}" for goodput in goodputs),
        f"{100 * again:.1f} %",
        *(f"{mean_count(senders, names):.0f}" for names in (RECOVERIES, UNDONE, REORDERED)),
    ]
