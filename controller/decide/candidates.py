"""Which running flows are looked at for better paths, and which moves are worth it."""

from __future__ import annotations

import math
from collections.abc import Callable

from controller.model.journal import Journaled
from controller.state.flow import ROUNDING, Flow, Slot
from controller.state.flow_table import by_arc, slot_loads
from controller.state.state import State

MOVE_INTERVAL_S = 1.0
"""Running flows are moved to better paths in rounds, so far apart."""


class Candidates(Journaled):
    """Chooses flows that may gain by being moved."""

    def __init__(self, state: State, is_moving: Callable[[str], bool]) -> None:
        self._state = state
        self._is_moving = is_moving
        # When flows over several streams were last looked at, and the number of the last of them.
        self._looked_at = -math.inf
        self._last_looked_at = 0

    def are_short_of_streams(self) -> bool:
        """Return whether flows have less than they asked for and may have more streams."""
        flows = (flow for flow in self._state.flows.short() if flow.max_streams)
        return any(flow.most_paths > len(flow.streams) and self._is_hungry(flow) for flow in flows)

    def choose(self, now: float) -> tuple[list[Flow], float | None]:
        """Return flows that may gain, and when there are more to look at (None: no time of its own)."""
        hungry = [flow for flow in self._state.flows.short() if self._is_hungry(flow)]
        most = max(1, math.ceil(self._state.settings.moves_per_s * MOVE_INTERVAL_S))
        detours = self._on_detours()
        if detours and now < self._looked_at + MOVE_INTERVAL_S:
            return hungry[:most], self._looked_at + MOVE_INTERVAL_S
        self._looked_at = now
        chosen = (hungry + self._in_turns(detours, most))[:most]
        return chosen, now + MOVE_INTERVAL_S if len(hungry) > most else None

    def _is_hungry(self, flow: Flow) -> bool:
        """Return whether a flow may be moved and would gain more than a little."""
        least = 1 - self._state.settings.min_gain
        return self._is_free(flow) and flow.rate_bps < least * flow.requested_bps

    def _is_free(self, flow: Flow) -> bool:
        return flow.is_active and flow.objective is not None and not self._is_moving(flow.id)

    def _on_detours(self) -> list[Flow]:
        """Return flows over several streams that could have fewer of them, or less delay."""
        return [
            flow
            for flow in self._state.flows.growing()
            if self._is_free(flow)
            and sum(stream.rate_bps > 0 for stream in flow.streams) > 1
            and not self._is_hungry(flow)
        ]

    def _in_turns(self, flows: list[Flow], most: int) -> list[Flow]:
        later = [flow for flow in flows if flow.number > self._last_looked_at]
        earlier = [flow for flow in flows if flow.number <= self._last_looked_at]
        chosen = (later + earlier)[:most]
        self._last_looked_at = chosen[-1].number if chosen else 0
        return chosen

    def fits(self, flow: Flow, slots: tuple[Slot, ...]) -> bool:
        """Return whether a move fits beside everything that is carried now."""
        ratio = self._state.settings.ack_ratio
        before = by_arc(slot_loads(flow, flow.streams, ratio))
        after = by_arc(slot_loads(flow, slots, ratio))
        for arc, load_bps in after.items():
            # Where both paths lead, the flow is either on one or on the other.
            other_bps = self._state.flows.load_bps(arc) - before.get(arc, 0.0)
            capacity_bps = self._state.offered_bps(arc)
            if other_bps + max(load_bps, before.get(arc, 0.0)) > capacity_bps * (1 + 1e-9):
                return False
        return True

    def gains(self, flow: Flow, slots: tuple[Slot, ...]) -> bool:
        """Return whether a move is worth it: for more rate, or where streams come and go for less delay."""
        least = self._state.settings.min_gain
        gain_bps = sum(slot.rate_bps for slot in slots) - flow.rate_bps
        if gain_bps > least * flow.requested_bps:
            return True
        before = sum(stream.rate_bps * stream.delay_s for stream in flow.streams)
        after = sum(slot.rate_bps * slot.delay_s for slot in slots)
        keeps_rate = gain_bps >= -ROUNDING * flow.requested_bps
        return flow.max_streams > 0 and keeps_rate and after < (1 - least) * before
