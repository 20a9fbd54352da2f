"""Flows that were granted before: by the last run, by another replica, or under another topology file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from controller.decide.component import Component, Context
from controller.decide.leases import Leases
from controller.model.client_events import ClientEventKind
from controller.model.journal import JournaledDict
from controller.model.messages import FlowEnded, Notify
from controller.state.flow import Flow
from controller.state.flow_record import FLOW, flow_of
from controller.state.lost_paths import on_paths_of_file


class Takeover(Component):
    """Restores flows from their records."""

    def __init__(self, shared: Context, leases: Leases, capacity_changed: Callable[[float], None]) -> None:
        super().__init__(shared)
        self._leases = leases
        self._capacity_changed = capacity_changed
        # Records whose paths the topology file does not have, by the flows' ids.
        self._given_up: JournaledDict[str, Mapping[str, Any]] = JournaledDict()

    def follow(self, flow_id: str, record: Mapping[str, Any] | None, now: float) -> None:
        """Apply another replica's record of a flow, with a whole lease; None: the flow has ended."""
        former = self._state.flows.get(flow_id)
        if former is not None:
            self._state.flows.remove(former)
        self._given_up.pop(flow_id, None)
        if record is None:
            self._state.flows.remember_ended(flow_id)
            return
        flow = self._flow(flow_id, record, now)
        if flow is None:
            self._given_up[flow_id] = record
            return
        if former is not None:
            flow.expires_at = former.expires_at
        self._state.flows.add(flow)

    def follow_lease(self, flow_id: str, now: float) -> None:
        """Apply another replica's renewal of a flow's lease."""
        flow = self._state.flows.get(flow_id)
        if flow is not None:
            flow.expires_at = now + flow.lease_s

    def lead(self, now: float) -> None:
        """Become the leader: replan or end flows without a path, and extend the leases of the others."""
        given_up, self._given_up = self._given_up, JournaledDict()
        self.restore(given_up, now)
        self._leases.lead(now)

    def restore(
        self,
        records: Mapping[str, Mapping[str, Any]],
        now: float,
        owners: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Restore flows, each with a whole lease for its owner to renew.

        Those whose paths the topology file has no more are planned again, or end. `owners` are the sessions
        that hear of it, by the flows' ids.
        """
        are_moved = False
        for flow_id, record in sorted(records.items(), key=lambda item: item[1]["number"]):
            kept = on_paths_of_file(record, self._state)
            flow, owner = self._flow(flow_id, kept or record, now), owners.get(flow_id, "")
            if kept is None or flow is None:
                self._give_up(flow_id, record, owner)
                continue
            flow.owner = owner
            self._state.flows.add(flow)
            self._leases.renew(flow, now)
            are_moved = are_moved or kept is not record
        if are_moved:
            self._capacity_changed(now)

    def _flow(self, flow_id: str, record: Mapping[str, Any], now: float) -> Flow | None:
        """Return the flow of a record, and reserve its number."""
        flows = self._state.flows
        flows.last_number = max(flows.last_number, record["number"])
        return flow_of(flow_id, record, self._state, now)

    def _give_up(self, flow_id: str, record: Mapping[str, Any], owner: str) -> None:
        reason = "the topology file has no path for it any more, or other addresses of its hosts"
        facts = {key: record[key] for key in ("source", "destination")} | {"flow": flow_id, "reason": reason}
        self._outbox.tell(ClientEventKind.FLOW_ENDED, f"flow {flow_id} ended: {reason}", facts, "warning")
        self._outbox.store(FLOW, flow_id, None)
        self._state.flows.remember_ended(flow_id)
        if owner:
            self._outbox.put(Notify(owner, FlowEnded(flow_id, reason)))
