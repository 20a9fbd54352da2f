"""Copies a state, to try on the copy what would happen if."""

from __future__ import annotations

from typing import Any

from controller.decide.live_optima import LiveOptima
from controller.decide.rerouting import moved_flow
from controller.model.state_copy import StateCopy
from controller.state.flow_record import flow_of, record_of
from controller.state.state import State


def copy_state(state: State, optima: LiveOptima) -> StateCopy:
    """Return a copy; it takes some microseconds for each flow."""
    return StateCopy(
        state.live.network,
        state.settings,
        state.live.status(),
        tuple(flow_records(state).items()),
        state.measured.all_yielded(),
        optima.copies(),
    )


def flow_records(state: State) -> dict[str, dict[str, Any]]:
    """Return the records of all flows by their ids, of those that are being moved as they will be."""
    return {
        flow.id: record_of(moved_flow(state, flow, flow.reserved) if flow.reserved else flow)
        for flow in state.flows
    }


def state_from_copy(copy: StateCopy) -> State:
    """Return a state of its own, like the one that was copied."""
    state = State(copy.network, copy.settings)
    state.live.become(copy.status)
    state.measured.set_yielded(copy.yielded_bps)
    for flow_id, record in copy.flows:
        flow = flow_of(flow_id, record, state, 0.0)
        if flow is not None:
            state.flows.add(flow)
    return state
