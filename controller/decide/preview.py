"""What would happen if: the controller's own decisions, made on a copy of network and flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from controller.decide.granting import grant
from controller.decide.live_optima import LiveOptima
from controller.decide.planning import NEGLIGIBLE_SHARE, optimise
from controller.decide.rerouting import carried_over, moved_flow, reroute, set_rates
from controller.decide.state_copies import state_from_copy
from controller.errors import AnyFailure, Conflict, NotFound, RequestError, unknown_flow
from controller.model.preview_views import (
    AddedFlowView,
    MovedFlowView,
    PreviewLinkView,
    PreviewPathView,
    PreviewSummaryView,
    PreviewView,
    RefusalView,
)
from controller.model.requests import FailedElements, FlowRequest, PreviewRequest, ScaledDemands
from controller.model.state_copy import StateCopy
from controller.state.flow import Flow, FlowState, Slot


def preview(copy: StateCopy, wanted: PreviewRequest, time_limit_s: float | None = None) -> PreviewView:
    """Return what would happen if links and switches failed, then demands grew, then flows were requested.

    Flows on failed links are planned again as the controller does at once. (Later it may move others too,
    a few at a time, where they gain by it.)

    Raises:
        NotFound: There is no such link, switch or flow.
        Conflict: The rates of a flow to be scaled were given by hand.
        SolverError: A solve failed or ran out of time.
    """
    trial = _Trial(copy, time_limit_s)
    trial.fail(wanted.fail)
    trial.scale(wanted.scale)
    added = tuple(trial.add(request, number) for number, request in enumerate(wanted.add, 1))
    return trial.view(added)


class _Trial:
    """A copy of the network on which things happen."""

    def __init__(self, copy: StateCopy, time_limit_s: float | None) -> None:
        self._state = state_from_copy(copy)
        self._optima = LiveOptima(self._state.live, time_limit_s)
        self._flows = tuple(self._state.flows)
        self._before = {flow.id: flow.slots() for flow in self._flows}
        self._loads_before = self._loads()
        self._optima.go_on_from(copy.engines)

    def fail(self, failure: FailedElements) -> None:
        """Let links and switches fail, and plan the flows on them again."""
        self._check(failure)
        if not failure.links and not failure.switches:
            return
        live = self._state.live
        live.fail(failure.links, failure.switches)
        down = [link for link in live.take_changed_links() if not live.link_is_up(link)]
        lost = carried_over(self._state, down)

        def failed(_: str, error: AnyFailure) -> None:
            raise error

        planned = reroute(self._state, self._optima, lost, self._set_rates, failed)
        for flow in lost:
            if flow.id in planned:
                self._state.flows.move(flow, moved_flow(self._state, flow, planned[flow.id]))

    def scale(self, scalings: Sequence[ScaledDemands]) -> None:
        """Multiply demands; as in a change of their rates, flows keep their paths."""
        for scaling in scalings:
            for flow in self._named(scaling.flow_id):
                flow.requested_bps *= scaling.factor
        if scalings:
            for objective in sorted({flow.objective for flow in self._flows if flow.objective is not None}):
                self._set_rates(optimise(self._state, self._optima, objective).rates)

    def add(self, request: FlowRequest, number: int) -> AddedFlowView:
        """Request a flow; those that are added after it find it there."""
        requested_bps = request.rate_bps or sum(path.rate_bps for path in request.paths)
        number += max((flow.number for flow in self._flows), default=0)
        try:
            granted = grant(self._state, self._optima, request, f"preview-{number}", number, is_settled=True)
            assert granted is not None, "it may take a solve"
        except RequestError as error:
            return AddedFlowView(
                source=request.source,
                destination=request.destination,
                granted=False,
                requested_bps=requested_bps,
                rate_bps=0.0,
                paths=(),
                refusal=RefusalView(code=error.code.value, field=error.field, reason=error.reason),
            )
        flow = granted.flow
        flow.state = FlowState.ACTIVE
        self._state.flows.add(flow)
        self._set_rates(granted.rates)
        return AddedFlowView(
            source=flow.source.name,
            destination=flow.destination.name,
            granted=True,
            requested_bps=requested_bps,
            rate_bps=flow.rate_bps,
            paths=_paths(flow.slots()),
            refusal=None,
        )

    def view(self, added: tuple[AddedFlowView, ...]) -> PreviewView:
        """Return all that differs from before."""
        moved = tuple(view for view in map(self._moved, self._flows) if view is not None)
        links = self._links()
        outcomes = [view.outcome for view in moved]
        summary = PreviewSummaryView(
            flows=len(self._flows),
            admitted=sum(view.granted for view in added),
            refused=sum(not view.granted for view in added),
            moved=outcomes.count("moved"),
            lost=outcomes.count("lost"),
            rate_changed=outcomes.count("rate_changed"),
            rate_before_bps=sum(map(_rate_bps, self._before.values())),
            rate_after_bps=sum(flow.rate_bps for flow in self._state.flows),
            max_utilisation_before=max((link.utilisation_before for link in links), default=0.0),
            max_utilisation_after=max((link.utilisation_after for link in links if link.up), default=0.0),
        )
        return PreviewView(summary=summary, added=added, flows=moved, links=links)

    def _moved(self, flow: Flow) -> MovedFlowView | None:
        before, after = self._before[flow.id], flow.slots()
        outcome: Literal["moved", "rate_changed", "lost"]
        if flow.rate_bps <= 0 < _rate_bps(before):
            outcome = "lost"
        elif [slot.path for slot in before] != [slot.path for slot in after]:
            outcome = "moved"
        elif _differ(before, after, flow.requested_bps):
            outcome = "rate_changed"
        else:
            return None
        return MovedFlowView(
            flow_id=flow.id,
            source=flow.source.name,
            destination=flow.destination.name,
            outcome=outcome,
            requested_bps=flow.requested_bps,
            rate_before_bps=_rate_bps(before),
            rate_after_bps=flow.rate_bps,
            paths_before=_paths(before),
            paths_after=_paths(after),
        )

    def _links(self) -> tuple[PreviewLinkView, ...]:
        loads = self._loads()
        return tuple(
            PreviewLinkView(
                link=name,
                name=arc.link,
                capacity_bps=arc.rate_bps,
                up=self._state.live.arc_is_up(name),
                allocated_before_bps=self._loads_before[name],
                allocated_after_bps=loads[name],
                utilisation_before=self._loads_before[name] / arc.rate_bps,
                utilisation_after=loads[name] / arc.rate_bps,
            )
            for name, arc in self._state.live.arcs.items()
        )

    def _loads(self) -> dict[str, float]:
        return {arc: self._state.allocated_bps(arc) for arc in self._state.live.arcs}

    def _check(self, failure: FailedElements) -> None:
        for link in failure.links:
            if not self._state.live.has_link(link):
                raise NotFound("fail.links", f"there is no link {link!r}; GET /v1/links lists them")
        for switch in failure.switches:
            if switch not in self._state.live.network.switches:
                raise NotFound("fail.switches", f"there is no switch {switch!r}; GET /v1/switches lists them")

    def _named(self, flow_id: str | None) -> Sequence[Flow]:
        """Return the flow with an id, or all whose demands can be scaled."""
        if flow_id is None:
            return [flow for flow in self._flows if flow.objective is not None]
        flow = self._state.flows.get(flow_id)
        if flow is None:
            raise unknown_flow(flow_id, "scale.flow_id")
        if flow.objective is None:
            raise Conflict("scale.flow_id", f"the rates of {flow_id} were given by hand")
        return (flow,)

    def _set_rates(self, rates: Mapping[str, tuple[float, ...]]) -> None:
        set_rates(self._state, rates)


def _rate_bps(slots: Sequence[Slot]) -> float:
    return sum(slot.rate_bps for slot in slots)


def _paths(slots: Sequence[Slot]) -> tuple[PreviewPathView, ...]:
    return tuple(PreviewPathView(**slot._asdict()) for slot in slots)


def _differ(before: Sequence[Slot], after: Sequence[Slot], requested_bps: float) -> bool:
    least_bps = NEGLIGIBLE_SHARE * requested_bps
    pairs = zip(before, after, strict=True)
    return any(abs(one.rate_bps - other.rate_bps) > least_bps for one, other in pairs)
