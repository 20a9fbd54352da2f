"""Plain TCP over the shortest path by delay, as OSPF with the delay for its metric would route it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from experiments.apps.config import Connection
from experiments.protocols.base import FlowPlan
from experiments.results import FlowResult, LinkResult


class Ospf:
    """One TCP connection per flow on the controller's default routes; it asks the controller for nothing."""

    name = "ospf"
    description = "plain TCP on the shortest path by delay"
    header_bytes = 0
    default_routing: Literal["shortest", "ecmp"] = "shortest"

    def connection(self, plan: FlowPlan) -> Connection:
        """Return a plain connection."""
        del plan
        return Connection()

    def check(self, flows: Sequence[FlowResult], links: Sequence[LinkResult]) -> dict[str, object]:
        """Return the path of each flow as the switches' rules have it."""
        del links
        return {"paths": {flow.flow: [allocated.path for allocated in flow.allocated] for flow in flows}}
