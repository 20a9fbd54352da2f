"""Moves flows to other paths: when a link goes, when one returns, when another flow leaves capacity.

A stream is its TCP connection's addresses; pinned along another path, its hosts need do nothing. A move is
one rule changed at each end, so each packet is on one path or on the other as a whole; where a path is longer
than a label, the switches on it at which labels end come first. The new optimum's rates count from the moment
it is computed; a flow whose old path works keeps that too on the accounts until it has been turned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from controller.decide.candidates import MOVE_INTERVAL_S, Candidates
from controller.decide.component import Component, Context
from controller.decide.live_optima import LiveOptima
from controller.decide.notifications import flow_fields
from controller.decide.planning import replan
from controller.decide.rates import Rates
from controller.decide.rerouting import carried_over, moved_flow, reroute, reserve
from controller.errors import FAILURES, AnyFailure
from controller.install.transactions import NotInstalled, Transaction
from controller.model.client_events import ClientEventKind
from controller.model.journal import JournaledDict
from controller.model.rules import (
    TABLE_DELIVER,
    FlowEntry,
    Group,
    GroupChange,
    Rule,
    Stages,
    by_switch,
    flow_number,
)
from controller.state.flow import OPEN_TIMEOUT_S, Flow, Slot, Stream, StreamState

_IMPROVE_AFTER_S = 0.2
"""From the return of capacity to the plan that uses it: what happens meanwhile is planned together."""

_RETRY_S = 5.0
"""A flow that a switch refused to move, or that had no room beside others, is tried again after this time."""


@dataclass(eq=False)
class _Move:
    """A flow whose new rules are on their way; `leftover` are those to remove at the end."""

    recovery: Recovery
    before: Flow
    moved: Flow  # as it will be
    slots: tuple[Slot, ...]
    leftover: tuple[tuple[str, Rule], ...]
    transaction: Transaction | None = None

    def owns(self, cookie: int) -> bool:
        return flow_number(cookie) == self.before.number

    def installed(self, now: float) -> None:
        self.recovery.installed(self.before.id, now)

    def failed(self, failure: NotInstalled, now: float) -> None:
        if self.recovery.is_moving(self.before.id):
            self.recovery.failed(self.before.id, failure.text, now)


class Recovery(Component):
    """Plans flows again and moves them.

    `lost` hears of rules of a flow that are not put back: (flow, reason, now).
    """

    def __init__(
        self,
        shared: Context,
        optima: LiveOptima,
        rates: Rates,
        lost: Callable[[str, NotInstalled, float], None],
    ) -> None:
        super().__init__(shared)
        self._optima = optima
        self._rates = rates
        self._lost = lost
        self._moves: JournaledDict[str, _Move] = JournaledDict()  # by flow
        self._lost_links: JournaledDict[str, None] = JournaledDict()
        self._replan_at: float | None = None
        self._improve_at: float | None = None
        self._candidates = Candidates(self._state, self.is_moving)

    def rates_shared(self, now: float) -> None:
        """Record that flows share what there is with others than before: more streams may help some."""
        if self._improve_at is None and self._candidates.are_short_of_streams():
            self._improve_at = now + MOVE_INTERVAL_S

    def links_changed(self, lost: Collection[str], now: float) -> None:
        """Record that links went (those that are named) or returned."""
        for link in lost:
            self._lost_links[link] = None
            self._replan_at = now
        self.capacity_returned(now)

    def capacity_returned(self, now: float) -> None:
        """Record that there may be better paths."""
        if self._improve_at is None:
            self._improve_at = now + _IMPROVE_AFTER_S

    @property
    def is_busy(self) -> bool:
        """Whether new rules of any flow are on their way."""
        return bool(self._moves)

    def is_moving(self, flow_id: str) -> bool:
        """Return whether a flow's new rules are on their way."""
        return flow_id in self._moves

    def ports_of_move(self, flow_id: str) -> frozenset[int]:
        """Return the source ports of the streams that a flow will have when its new rules are there."""
        move = self._moves.get(flow_id)
        return frozenset(() if move is None else [stream.source_port for stream in move.moved.streams])

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        times = (self._replan_at, self._improve_at)
        return min((time for time in times if time is not None), default=None)

    def tick(self, now: float) -> bool:
        """Plan what is due; returns whether flows move."""
        if self._replan_at is not None and self._replan_at <= now:
            self._replan_at = None
            self._replan(now)
            return True
        if self._improve_at is not None and self._improve_at <= now:
            self._improve_at = None
            self._improve(now)
        return False

    # Planning

    def _replan(self, now: float) -> None:
        """Plan all flows again whose paths are broken; those without a path carry nothing and are told so."""
        lost = carried_over(self._state, self._lost_links)
        self._lost_links.clear()
        for flow in lost:
            self._abandon_move(flow.id)

        def failed(objective: str, error: AnyFailure) -> None:
            self._outbox.report("error", f"flows could not be planned again: {error}", objective=objective)

        planned = reroute(
            self._state, self._optima, lost, lambda rates: self._rates.apply(rates, now), failed
        )
        for flow in lost:
            if flow.id not in planned:
                self._outbox.report("warning", f"flow {flow.id} is carried by no path now", flow=flow.id)
                self._rates.tell(flow, now)
        self._begin(planned)

    def _flow(self, flow_id: str) -> Flow:
        flow = self._state.flows.get(flow_id)
        assert flow is not None
        return flow

    def _improve(self, now: float) -> None:
        """Move flows that would get more, or had to leave their paths, to better ones: few at a time."""
        self._restore_manual(now)
        chosen, self._improve_at = self._candidates.choose(now)
        for objective in sorted({flow.objective for flow in chosen if flow.objective is not None}):
            self._begin(self._better(objective, [f for f in chosen if f.objective == objective], now))

    def _better(self, objective: str, flows: Sequence[Flow], now: float) -> dict[str, tuple[Slot, ...]]:
        """Return the moves of flows that are worth it and fit beside everything that is carried now."""
        try:
            slots, _ = replan(self._state, self._optima, objective, flows)
        except FAILURES as error:
            self._outbox.report("error", f"better paths could not be computed: {error}", objective=objective)
            return {}
        moves: dict[str, tuple[Slot, ...]] = {}
        for flow in flows:
            wanted = slots.get(flow.id)
            if wanted is None or not flow.changed_streams(wanted):
                continue  # the same paths: rates are the rebalancing's
            if not self._candidates.gains(flow, wanted):
                continue
            if self._candidates.fits(flow, wanted):
                reserve(self._state, flow, wanted)
                moves[flow.id] = wanted
            elif flow.max_streams:
                # Others are in the way, with what they have until they are moved or share again.
                self._improve_at = min(self._improve_at or math.inf, now + _RETRY_S)
        return moves

    def _restore_manual(self, now: float) -> None:
        """Give flows whose paths were given by hand their rates back where the links are there again."""
        for flow in self._state.flows.manual():
            given = flow.given_bps
            if given is None or not flow.is_active or self._state.lost_links(flow):
                continue
            if any(stream.rate_bps < rate for stream, rate in zip(flow.streams, given, strict=True)):
                slots = tuple(
                    Slot(s.path, rate, s.delay_s) for s, rate in zip(flow.streams, given, strict=True)
                )
                if self._candidates.fits(flow, slots):
                    self._rates.apply({flow.id: given}, now)

    # Moving

    def _begin(self, moves: Mapping[str, tuple[Slot, ...]]) -> None:
        """Send the new rules of flows; what ingresses lead to comes first."""
        for flow_id, slots in moves.items():
            flow = self._flow(flow_id)
            moved = moved_flow(self._state, flow, slots)
            new = self._new_rules(flow, moved, slots)
            leftover = self._leftover(flow, slots, new)
            behind: list[tuple[str, FlowEntry]] = []
            ingress: list[tuple[str, FlowEntry]] = []
            for switch, entry in new:
                is_behind = isinstance(entry, Rule) and entry.table == TABLE_DELIVER
                changed = GroupChange(entry) if isinstance(entry, Group) else entry
                (behind if is_behind else ingress).append((switch, changed))
            move = _Move(self, flow, moved, slots, leftover)
            stages: Stages = [by_switch(those) for those in (behind, ingress) if those]
            move.transaction = self._transactions.begin(move, stages)
            self._moves[flow_id] = move

    def _new_rules(self, flow: Flow, moved: Flow, slots: tuple[Slot, ...]) -> list[tuple[str, Rule | Group]]:
        return moved.entries(self._state.live.ports, flow.changed_streams(slots))

    def _old_rules(self, flow: Flow, slots: tuple[Slot, ...]) -> list[tuple[str, Rule]]:
        return _rules(flow.entries(self._state.live.ports, flow.changed_streams(slots)))

    def _leftover(
        self, flow: Flow, slots: tuple[Slot, ...], new: list[tuple[str, Rule | Group]]
    ) -> tuple[tuple[str, Rule], ...]:
        """Return the rules of a flow in whose place no new ones come."""
        pairs = zip(flow.streams, slots, strict=False)
        has_same_ends = flow.split is None and all(_ends(old) == _ends(slot) for old, slot in pairs)
        if has_same_ends and flow.has_ends_alone(self._state.live.ports):
            return ()
        taken = {(switch, rule.key) for switch, rule in _rules(new)}
        old = self._old_rules(flow, slots)
        return tuple((switch, rule) for switch, rule in old if (switch, rule.key) not in taken)

    def installed(self, flow_id: str, now: float) -> None:
        """Record that all switches have the new rules of a flow: it has been turned."""
        move, flow = self._moves.pop(flow_id), self._flow(flow_id)
        self._take_moved(flow, move.moved, now)
        self.links_changed(self._state.lost_links(flow), now)
        self._rates.tell(flow, now)
        for switch, rule in move.leftover:
            self._remove(switch, rule)

    def _take_moved(self, flow: Flow, moved: Flow, now: float) -> None:
        """Give a flow its new paths, and the streams that its host is to open."""
        kept = {stream.source_port: stream for stream in flow.streams}
        for stream in moved.streams if flow.max_streams else ():  # its host may have opened some meanwhile
            before = kept.get(stream.source_port)
            stream.state = StreamState.OPENING if before is None else before.state
            stream.until = now + OPEN_TIMEOUT_S if before is None else before.until
        added = [stream.source_port for stream in moved.streams if stream.source_port not in kept]
        self._state.flows.move(flow, moved)
        if added:
            text, facts = f"flow {flow.id} has more streams", flow_fields(flow) | {"source_ports": added}
            self._outbox.tell(ClientEventKind.FLOW_STREAMS_ADDED, text, facts)

    def failed(self, flow_id: str, reason: str, now: float) -> None:
        """Take a move back; it is tried again after a while."""
        flow = self._flow(flow_id)
        self._outbox.report("error", f"flow {flow.id} could not be moved: {reason}", flow=flow.id)
        self._abandon_move(flow_id)
        self._rates.tell(flow, now)
        self._improve_at = min(self._improve_at or math.inf, now + _RETRY_S)

    def _take_back(self, flow: Flow, moved: Flow, slots: tuple[Slot, ...]) -> None:
        """Remove what a move has installed, and put the rules of the old path back."""
        reserve(self._state, flow, ())
        for switch, rule in _rules(self._new_rules(flow, moved, slots)):
            self._remove(switch, rule)
        for switch, rules in by_switch(self._old_rules(flow, slots)).items():
            if self._state.live.is_connected(switch):
                self._transactions.send(switch, rules, partial(self._lost, flow.id))

    def flow_ended(self, flow: Flow) -> Flow | None:
        """Forget the move of a flow that ends; returns the flow as it would have been, whose rules go too."""
        move = self._drop_move(flow.id)
        return None if move is None else move.moved

    def _abandon_move(self, flow_id: str) -> None:
        move = self._drop_move(flow_id)
        if move is not None:
            self._take_back(self._flow(flow_id), move.moved, move.slots)

    def _drop_move(self, flow_id: str) -> _Move | None:
        move: _Move | None = self._moves.pop(flow_id, None)
        if move is not None:
            self._transactions.cancel(move.transaction)
        return move


def _rules(entries: list[tuple[str, Rule | Group]]) -> list[tuple[str, Rule]]:
    return [(switch, entry) for switch, entry in entries if isinstance(entry, Rule)]


def _ends(slot: Slot | Stream) -> tuple[str, str]:
    return slot.path[1], slot.path[-2]
