"""docs/simulator-mptcp.md: MPTCP in the simulator beside the kernel's in README's runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.model.results_files import read_results
from experiments.sim import Simulation

from .cells import interval
from .ppfs import DOCUMENT

PAGE = "simulator-mptcp.md"
PROTOCOLS = ("mptcp-sdn", "mptcp-dualhomed", "mptcp")


@dataclass(frozen=True)
class BesideKernel:
    """Goodput of each flow, by the same scenario with the same seeds."""

    name = "beside the kernel"

    def lines(self) -> Iterator[str]:
        """Yield the table: the kernel's runs are those of the kept document, the simulator's are made now."""
        document = read_results(DOCUMENT)
        kept = [run for run in document.model_dump()["runs"] if run["protocol"] in PROTOCOLS and run["valid"]]
        yield "| protocol | case, flow | asked | seeds | kernel | simulator | difference |"
        yield "|---|---|---|---|---|---|---|"
        for case in dict.fromkeys(run["case"] for run in kept):
            runs = [run for run in kept if run["case"] == case]
            seeds = sorted({run["seed"] for run in runs})
            study = Simulation.load(document.scenario, case, variant=document.variant)
            simulated = study.run(PROTOCOLS, seeds=seeds, duration_s=runs[0]["duration_s"]).flows
            flows = [(run["protocol"], flow) for run in runs for flow in run["flows"]]
            for protocol in PROTOCOLS:
                for name in dict.fromkeys(flow["flow"] for each, flow in flows if each == protocol):
                    mine = [flow for each, flow in flows if (each, flow["flow"]) == (protocol, name)]
                    rows = [row for row in simulated if (row["protocol"], row["flow"]) == (protocol, name)]
                    yield _line(protocol, case, mine, [row["goodput_bps"] for row in rows])


TABLES = (BesideKernel(),)


def _line(protocol: str, case: str, flows: Sequence[dict[str, Any]], simulated: Sequence[float]) -> str:
    kernel = [flow["goodput_bps"] for flow in flows]
    percent = 100 * (statistics.fmean(simulated) / statistics.fmean(kernel) - 1)
    cells = [
        f"`{protocol}`",
        f"{case}, {flows[0]['flow']}",
        f"{flows[0]['requested_bps'] / 1e6:.2f}",
        str(len(kernel)),
        interval(kernel, 1e-6),
        interval(simulated, 1e-6),
        f"{percent:+.1f} %" if abs(percent) >= 0.05 else "0",
    ]
    return "| " + " | ".join(cells) + " |"
