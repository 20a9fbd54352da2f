"""What `mstcp-lab solve` found, as the documents that programs read."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.gomr import Allocation, Problem
from controller.gomr.allocation import loads_of_allocation
from experiments.routing.events import EventTimes, percentiles_ms
from topologies import Network

COLUMNS = ("flow", "source", "destination", "requested_bps", "path", "rate_bps", "delay_s")


@dataclass(frozen=True)
class Solved:
    """A problem, its allocation, and what they cost.

    Attributes:
        network: The network.
        problem: The problem.
        allocation: Its optimum.
        build_ms: CPU time of this thread to make the checked problem of the network and its demands.
        solve_ms: CPU time of this thread from the problem to the checked and certified allocation.
        events: What events took; None if there were none.
        notes: Sentences on what was assumed or left out of the files.
    """

    network: Network
    problem: Problem
    allocation: Allocation
    build_ms: float
    solve_ms: float
    events: EventTimes | None = None
    notes: tuple[str, ...] = ()

    def loads_bps(self) -> Mapping[str, float]:
        """Return the load of every edge."""
        return loads_of_allocation(self.problem, self.allocation)


def summary(solved: Solved) -> dict[str, Any]:
    """Return the summary: totals, certificate and times."""
    allocation, events = solved.allocation, solved.events
    made: dict[str, Any] = {
        "nodes": len(solved.network.nodes),
        "links": len(solved.network.links),
        "flows": len(solved.problem.demands),
        "engine": allocation.engine,
        "objective": allocation.objective,
        "admitted_bps": allocation.admitted_bps,
        "requested_bps": allocation.requested_bps,
        "cost_bps_s": allocation.cost_bps_s,
        "paths": sum(map(len, allocation.paths.values())),
        "certificate": {
            "upper_bound_bps": allocation.upper_bound_bps,
            "gap": allocation.gap,
            "max_violation_bps": allocation.max_violation_bps,
        },
        "cpu_ms": {"build": solved.build_ms, "solve": solved.solve_ms},
    }
    if events is not None:
        made["events"] = {
            "flow_ms": percentiles_ms(events.flow_ms),
            "link_failure_ms": percentiles_ms(events.link_failure_ms),
        }
    return made


def allocation_document(solved: Solved) -> dict[str, Any]:
    """Return every flow with its paths, and the load of every edge."""
    loads_bps = solved.loads_bps()
    return {
        "format": 1,
        "network": solved.network.name,
        "summary": summary(solved),
        "flows": [
            {
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
            for demand in solved.problem.demands
        ],
        "links": [
            {
                "from": edge.tail,
                "to": edge.head,
                "capacity_bps": edge.capacity_bps,
                "load_bps": loads_bps[edge.id],
            }
            for edge in solved.problem.edges
        ],
    }


def allocation_csv(solved: Solved) -> str:
    """Return a line for every path; a flow that gets nothing has one without a path."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for demand in solved.problem.demands:
        asked = (demand.id, demand.source, demand.destination, demand.rate_bps)
        for path in solved.allocation.paths[demand.id]:
            writer.writerow((*asked, "-".join(path.nodes), path.rate_bps, path.delay_s))
        if not solved.allocation.paths[demand.id]:
            writer.writerow((*asked, "", 0.0, ""))
    return text.getvalue()
