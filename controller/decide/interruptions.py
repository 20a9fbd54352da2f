"""How long flows are without what they had: from the loss of a link until they have new paths and rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controller.decide.component import Component, Context
from controller.decide.notifications import flow_fields
from controller.model.client_events import ClientEventKind
from controller.model.journal import Journaled, JournaledDict
from controller.state.flow import Flow

_WHOLE = 1 - 1e-6
"""A flow that has this share of the rate that it had is restored; the rest is the solver's rounding."""


@dataclass
class _Interruption(Journaled):
    """A flow that lost a link, and what it had until then."""

    since: float
    rate_bps: float
    is_degraded: bool = False


class Interruptions(Component):
    """Tells clients which flows lost something, which were planned again, and how long that took."""

    def __init__(self, shared: Context) -> None:
        super().__init__(shared)
        self._by_flow: JournaledDict[str, _Interruption] = JournaledDict()

    @property
    def degraded(self) -> int:
        """How many flows carry less than before they lost a link."""
        return sum(each.is_degraded for each in self._by_flow.values())

    def links_lost(self, links: Iterable[str], now: float) -> None:
        """Record that links went down, by their names in the file; before anything is planned again."""
        for link in links:
            for flow in self._state.flows_on_lost(link):
                if flow.id not in self._by_flow and flow.is_active and flow.rate_bps > 0:
                    self._by_flow[flow.id] = _Interruption(now, flow.rate_bps)

    def settled(self, flow: Flow, now: float, has_moved: bool) -> None:
        """Record that a flow has new rates, or (`has_moved`) that it was planned again."""
        lost = self._by_flow.get(flow.id)
        if lost is None:
            if has_moved and flow.rate_bps > 0:
                self._tell(ClientEventKind.FLOW_REPLANNED, "was moved to better paths", flow, None)
            return
        took_s = now - lost.since
        if has_moved and flow.rate_bps > 0:
            self._tell(ClientEventKind.FLOW_REPLANNED, f"was planned again in {took_s:.3f} s", flow, took_s)
        if flow.rate_bps >= _WHOLE * min(lost.rate_bps, flow.requested_bps):
            if lost.is_degraded:
                text = f"has all of its rate again after {took_s:.3f} s"
                self._tell(ClientEventKind.FLOW_RESTORED, text, flow, took_s, had_bps=lost.rate_bps)
            if has_moved or lost.is_degraded or not self._state.lost_links(flow):
                del self._by_flow[flow.id]
        elif not lost.is_degraded or has_moved:
            lost.is_degraded = True
            text = "carries less than it did" if flow.rate_bps > 0 else "is carried by no path now"
            self._tell(ClientEventKind.FLOW_DEGRADED, text, flow, None, had_bps=lost.rate_bps)

    def ended(self, flow: Flow) -> None:
        """Forget a flow."""
        self._by_flow.pop(flow.id, None)

    def _tell(
        self, kind: ClientEventKind, text: str, flow: Flow, recovery_s: float | None, **data: object
    ) -> None:
        level = "warning" if kind is ClientEventKind.FLOW_DEGRADED else "info"
        facts = flow_fields(flow) | {"recovery_s": recovery_s} | data
        self._outbox.tell(kind, f"flow {flow.id} {text}", facts, level)
