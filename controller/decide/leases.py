"""How long flows live unless their owners renew them."""

from __future__ import annotations

from controller.decide.component import Component
from controller.state.flow import Flow

_TAKEOVER_LEASE_S = 10.0
"""Time for owners to find the controller that decides now: until then no lease ends."""


class Leases(Component):
    """The leases of all flows; none runs out before `_due`."""

    def renew(self, flow: Flow, now: float) -> None:
        """Begin another lease of a flow."""
        flow.expires_at = now + flow.lease_s
        if self._due is None or flow.expires_at < self._due:
            self._due = flow.expires_at

    def lead(self, now: float) -> None:
        """Begin to end flows whose leases run out, after their owners have had the time to renew them."""
        for flow in self._state.flows:
            flow.expires_at = max(flow.expires_at, now + min(flow.lease_s, _TAKEOVER_LEASE_S))
        self._due = min((flow.expires_at for flow in self._state.flows), default=None)

    def take_expired(self, now: float) -> list[Flow]:
        """Return the installed flows whose leases have run out."""
        if self._due is None or self._due > now:
            return []
        active = [flow for flow in self._state.flows if flow.is_active]
        self._due = min((flow.expires_at for flow in active if flow.expires_at > now), default=None)
        return [flow for flow in active if flow.expires_at <= now]
