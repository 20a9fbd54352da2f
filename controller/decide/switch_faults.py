"""What is wrong with switches, as they say it themselves."""

from __future__ import annotations

from controller.decide.component import Component
from controller.model.client_events import ClientEventKind
from controller.model.events import MessagesRefused, SwitchHeld
from controller.model.faults import FaultKind

_FULL_S = 30.0
"""A switch that had no room for a rule is sent no more for this time, or until a flow over it ends."""

_REFUSALS_LAST_S = 30.0
"""A switch that has refused no message for this time is without fault again."""


class SwitchFaults(Component):
    """Records such faults in the state, and reports each once."""

    def held(self, event: SwitchHeld) -> None:
        """Record that another controller decides for a switch, or does so no more."""
        switch = self._state.live.switch_name(event.datapath_id) or f"datapath {event.datapath_id}"
        faults = self._state.faults
        if not event.is_held:
            faults.clear(switch, FaultKind.HELD)
            return
        text = (
            f"{switch} is controlled by another controller: this one leaves it alone until that one is gone."
        )
        if faults.add(switch, FaultKind.HELD, text):
            self._outbox.tell(ClientEventKind.SWITCH_HELD, text, {"switch": switch}, "error")

    def messages_refused(self, event: MessagesRefused, now: float) -> None:
        """Record that a switch answers messages with errors: a fault until it has not done so for a while."""
        switch = self._state.live.switch_name(event.datapath_id)
        if switch is not None and self._state.live.is_connected(switch):
            text = f"{switch} refuses messages of the controller: {event.reason}."
            self._add(switch, FaultKind.MESSAGES_REFUSED, text, now + _REFUSALS_LAST_S)

    def full(self, switch: str, now: float) -> None:
        """Record that a switch had no room for a rule."""
        text = f"{switch} has no room for more rules: flows of its hosts are refused for a while."
        self._add(switch, FaultKind.TABLE_FULL, text, now + _FULL_S)

    def switch_left(self, switch: str) -> None:
        """Forget what a switch has refused."""
        for kind in (FaultKind.RULES_REFUSED, FaultKind.TABLE_FULL, FaultKind.MESSAGES_REFUSED):
            self._state.faults.clear(switch, kind)

    def _add(self, switch: str, kind: FaultKind, text: str, until: float) -> None:
        if self._state.faults.add(switch, kind, text, until):
            self._outbox.report("warning", text, switch=switch)
