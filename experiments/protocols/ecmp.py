"""Equal-cost multipath: plain TCP, and each switch hashes a connection to one of its equally short paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from experiments.apps.config import Connection
from experiments.protocols.base import FlowPlan
from experiments.results import FlowResult, LinkResult


class Ecmp:
    """One TCP connection per flow; where all shortest paths are single ones, the same as `ospf`."""

    name = "ecmp"
    description = "plain TCP, each connection hashed to one of the shortest paths by delay"
    header_bytes = 0
    default_routing: Literal["shortest", "ecmp"] = "ecmp"

    def connection(self, plan: FlowPlan) -> Connection:
        """Return a plain connection."""
        del plan
        return Connection()

    def check(self, flows: Sequence[FlowResult], links: Sequence[LinkResult]) -> dict[str, object]:
        """Return the path of each flow, as its packets were seen to take it."""
        del links
        return {"paths": {flow.flow: [allocated.path for allocated in flow.allocated] for flow in flows}}
