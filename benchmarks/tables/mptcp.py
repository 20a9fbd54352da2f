"""docs/simulator-mptcp.md: MPTCP in the simulator beside the kernel's in README's runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.pages import markdown_table
from experiments.model.results_files import read_results
from experiments.sim import Simulation

from .cells import interval
from .ppfs import DOCUMENT

PAGE = "simulator-mptcp.md"
PROTOCOLS = ("mptcp-sdn", "mptcp-dualhomed", "mptcp")


def beside_kernel() -> Iterator[str]:
    """Return each flow's goodput in the kept document of the kernel's runs, and in new simulations."""
    head = ("protocol", "case, flow", "asked", "seeds", "kernel", "simulator", "difference")
    return markdown_table(head, _rows())


TABLES = {"beside the kernel": beside_kernel}


def _rows() -> Iterator[list[str]]:
    document = read_results(DOCUMENT)
    kept = [run for run in document.model_dump()["runs"] if run["protocol"] in PROTOCOLS and run["valid"]]
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
                yield _row(protocol, case, mine, [row["goodput_bps"] for row in rows])


def _row(protocol: str, case: str, flows: Sequence[dict[str, Any]], simulated: Sequence[float]) -> list[str]:
    kernel = [flow["goodput_bps"] for flow in flows]
    percent = 100 * (statistics.fmean(simulated) / statistics.fmean(kernel) - 1)
    return [
        f"`{protocol}`",
        f"{case}, {flows[0]['flow']}",
        f"{flows[0]['requested_bps'] / 1e6:.2f}",
        str(len(kernel)),
        interval(kernel, 1e-6),
        interval(simulated, 1e-6),
        f"{percent:+.1f} %" if abs(percent) >= 0.05 else "0",
    ]
