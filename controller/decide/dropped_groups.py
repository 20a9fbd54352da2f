"""Packets to multicast and broadcast addresses: switches drop and count them, and clients are told."""

from __future__ import annotations

import math

from controller.decide.component import Component, Context
from controller.model.client_events import ClientEventKind
from controller.model.journal import JournaledDict

_ASKED_INTERVAL_S = 30.0
"""The counters of ports are read more often; each question takes a part of their budget of messages."""

_TOLD_INTERVAL_S = 3600.0
"""Hosts send such packets all the time, to announce themselves and to look for others."""


class DroppedGroups(Component):
    """Reads how many of them each switch has dropped."""

    def __init__(self, shared: Context) -> None:
        super().__init__(shared)
        self._asked_at: JournaledDict[int, float] = JournaledDict()  # by datapath id
        self._told: JournaledDict[str, tuple[float, int]] = JournaledDict()  # when, and how many there were

    def take_due(self, datapath_id: int, now: float) -> bool:
        """Return whether a switch is to be asked now; then it is asked later the next time."""
        is_due = self._asked_at.get(datapath_id, -math.inf) + _ASKED_INTERVAL_S <= now
        if is_due:
            self._asked_at[datapath_id] = now
        return is_due

    def counted(self, switch: str, packets: int, now: float) -> None:
        """Record how many packets a switch has dropped since it was given the rule."""
        self._state.dropped_group_packets[switch] = packets
        told_at, told = self._told.get(switch, (-math.inf, 0))
        dropped = packets - told if packets >= told else packets  # fewer: the rule was made again
        if not dropped or now < told_at + _TOLD_INTERVAL_S:
            return
        self._told[switch] = now, packets
        text = f"{switch} has dropped {dropped} packets to multicast and broadcast addresses"
        facts = {"switch": switch, "packets": dropped}
        self._outbox.tell(ClientEventKind.GROUP_PACKETS_DROPPED, text, facts)
