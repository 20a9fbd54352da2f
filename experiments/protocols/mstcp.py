"""Multi-Stream TCP: the controller computes the paths, the library opens a TCP connection for each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

from experiments.apps.config import Connection, RequestedPath
from experiments.protocols.base import FlowPlan
from experiments.results import FlowResult, LinkResult, StreamSeries
from experiments.scenario import OBJECTIVES


class Mstcp:
    """The `mstcp` library with rates from the controller: computed, or given as the scenario has them."""

    name = "mstcp"
    description = "Multi-Stream TCP over the paths that the controller allocates"
    header_bytes = 8
    default_routing: Literal["shortest", "ecmp"] = "shortest"

    def connection(self, plan: FlowPlan) -> Connection:
        """Return a connection that asks the controller, by the case's allocation."""
        allocation = plan.case.allocation
        scheduler = plan.scenario.mstcp.scheduler
        if allocation in OBJECTIVES:
            return Connection(controller=plan.controller, objective=allocation, scheduler=scheduler)
        given = plan.flow.given_paths(allocation, self.name)
        paths = tuple(RequestedPath(path.path, path.rate_bps) for path in given)
        return Connection(controller=plan.controller, paths=paths, scheduler=scheduler)

    def check(self, flows: Sequence[FlowResult], links: Sequence[LinkResult]) -> dict[str, object]:
        """Return each flow's streams with the mean rate they carried, and how busy their paths were."""
        busy = {link.link: link.utilisation or 0.0 for link in links}
        return {
            "streams": {
                flow.flow: [_describe(stream, busy) for stream in flow.series.streams] for flow in flows
            }
        }


def _describe(stream: StreamSeries, busy: Mapping[str, float]) -> dict[str, object]:
    hops = itertools.pairwise(stream.path or ())
    return {
        "source_port": stream.source_port,
        "path": stream.path,
        "mean_bps": sum(stream.rate_bps) / max(1, len(stream.rate_bps)),
        "busiest_link": max((busy.get(f"{tail}->{head}", 0.0) for tail, head in hops), default=0.0),
    }
