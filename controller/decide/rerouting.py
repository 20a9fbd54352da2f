"""What a failure makes of flows: decided in one place, for what happens and for what would happen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from controller.decide.ack_paths import SHORTEST, ack_path
from controller.decide.live_optima import LiveOptima
from controller.decide.planning import NEGLIGIBLE_SHARE, on_free_paths, replan
from controller.errors import FAILURES, AnyFailure
from controller.state.flow import Flow, Slot
from controller.state.state import State

SetRates = Callable[[Mapping[str, tuple[float, ...]]], None]
Failed = Callable[[str, AnyFailure], None]


def carried_over(state: State, links: Collection[str]) -> list[Flow]:
    """Return the flows that carry something over one of these links, which are down, by their numbers."""
    flows = {flow.id: flow for link in links for flow in state.flows_on_lost(link)}
    carrying = (flow for flow in flows.values() if flow.is_active and flow.rate_bps > 0)
    return sorted(carrying, key=lambda flow: flow.number)


def reroute(
    state: State, optima: LiveOptima, lost: Sequence[Flow], set_rates: SetRates, failed: Failed
) -> dict[str, tuple[Slot, ...]]:
    """Plan flows again whose paths are broken, and reserve what each is to have.

    Each of these carries something over a link that is down. `set_rates` gives other running flows their
    rates; `failed` is called with the objective and the error where a solve fails.

    Returns:
        What each stream is to have, by the flow's id; missing: nothing is free for it.
    """
    for flow in lost:
        for stream in flow.streams:
            if flow.objective is not None or state.live.lost_links(stream.path):
                stream.rate_bps = 0.0  # off the accounts, until it is planned
    state.flows.account_all(lost)
    planned: dict[str, tuple[Slot, ...]] = {}
    for objective in sorted({flow.objective for flow in lost if flow.objective is not None}):
        broken = [flow for flow in lost if flow.objective == objective]
        slots = on_free_paths(state, objective, broken)
        if not slots:
            try:
                slots, rates = replan(state, optima, objective, broken)
            except FAILURES as error:
                failed(objective, error)
                continue
            set_rates(rates)
        for flow in broken:
            flow.reserved = slots.get(flow.id, ())
        state.flows.account_all(broken)
        planned.update(slots)
    return planned


def reserve(state: State, flow: Flow, slots: tuple[Slot, ...]) -> None:
    """Reserve the capacity of slots for a flow beside what it has; none: release what was reserved."""
    flow.reserved = slots
    state.flows.account(flow)


def set_rates(state: State, rates: Mapping[str, tuple[float, ...]]) -> list[Flow]:
    """Give running flows their rates, by stream; returns those for which it makes a difference."""
    changed = []
    for flow_id, values in rates.items():
        flow = state.flows.get(flow_id)
        if flow is None:
            continue
        least_bps = NEGLIGIBLE_SHARE * flow.requested_bps
        if any(abs(s.rate_bps - value) > least_bps for s, value in zip(flow.streams, values, strict=True)):
            changed.append(flow)
            for stream, value in zip(flow.streams, values, strict=True):
                stream.rate_bps = value
            state.flows.account(flow)
    return changed


def moved_flow(state: State, flow: Flow, slots: tuple[Slot, ...]) -> Flow:
    """Return a flow as it will be with other paths: acknowledgements of a split flow may need another too."""
    ack: tuple[str, ...] | None = None
    if flow.split is not None:
        ack = flow.split.ack_path
        if flow.split.acks != SHORTEST or state.live.lost_links(ack):
            paths = tuple(slot.path for slot in slots)
            ack = ack_path(state, flow.split.acks, flow.source.name, flow.destination.name, paths)
    return flow.moved(slots, ack)
