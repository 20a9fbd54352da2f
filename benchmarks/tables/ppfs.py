"""docs/ppfs.md: what the kernel's TCP makes of split packets, by the counters of README's runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.model.results_files import read_results
from experiments.report.recovery import RECOVERIES, REORDERED, UNDONE, mean_count

from .cells import interval

PAGE = "ppfs.md"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "results" / "butterfly.json"

Counters = Mapping[str, int]


@dataclass(frozen=True)
class Recoveries:
    """Goodput, and what the sender took for losses."""

    name = "ppfs tcp"

    def lines(self) -> Iterator[str]:
        """Yield the table of the kept document."""
        runs = [run for run in read_results(DOCUMENT).model_dump()["runs"] if run["protocol"] == "ppfs"]
        yield "| case, flow | paths | asked | goodput | seeds | resent | recoveries | undone | reordering |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for case in dict.fromkeys(run["case"] for run in runs):
            mine = [run for run in runs if run["case"] == case and run["valid"]]
            for index in range(len(mine[0]["flows"])):
                yield _line(
                    case, [run["flows"][index] for run in mine], [_sender(run, index) for run in mine]
                )


TABLES = (Recoveries(),)


def _sender(run: Mapping[str, Any], index: int) -> Counters:
    counters: Counters = run["evidence"]["hosts"][run["flows"][index]["src"]]
    return counters


def _line(case: str, flows: Sequence[Mapping[str, Any]], senders: Sequence[Counters]) -> str:
    goodputs = [flow["goodput_bps"] for flow in flows]
    again = statistics.fmean(each.get("TcpRetransSegs", 0) / each["TcpOutSegs"] for each in senders)
    cells = [
        f"{case}, {flows[0]['flow']}",
        str(len(flows[0]["allocated"])),
        f"{flows[0]['requested_bps'] / 1e6:.2f}",
        interval(goodputs, 1e-6),
        " ".join(f"{goodput / 1e6:.2f}" for goodput in goodputs),
        f"{100 * again:.1f} %",
    ]
    cells += [f"{mean_count(senders, names):.0f}" for names in (RECOVERIES, UNDONE, REORDERED)]
    return "| " + " | ".join(cells) + " |"
