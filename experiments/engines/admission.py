"""Refuses, before anything is built, what a controller would refuse when its network stands."""

from __future__ import annotations

from collections.abc import Sequence

from controller.errors import FAILURES
from experiments import protocols
from experiments.engines.sim.routing import Route, routes
from experiments.errors import ScenarioError, reason_of
from experiments.model.plan import RunPlan


def check_routes(plans: Sequence[RunPlan], *, in_kernels: bool) -> None:
    """Route the flows of each case with each protocol, once for all seeds.

    In kernels, where real hosts send, a flow that is not admitted would end the run.

    Raises:
        ScenarioError: with the case, the flow if one is to blame, and what to do.
    """
    first = {(plan.case_name, plan.protocol): plan for plan in reversed(plans)}
    for plan in reversed(first.values()):
        place = f"cases.{plan.case_name}"
        try:
            ways = routes(plan)
        except FAILURES as error:
            raise ScenarioError(plan.scenario.name, place, f"{plan.protocol}: {reason_of(error)}") from error
        except Exception:  # noqa: S112 (of an extension; the run will say where)
            continue
        for name, route in ways.items() if in_kernels else ():
            reason = _refused(plan.protocol_of(name), route)
            if reason:
                raise ScenarioError(plan.scenario.name, f"{place}.flows.{name}", reason)


def _refused(protocol: str, route: Route) -> str | None:
    paths, most = len(route.allocated), protocols.get(protocol).most_paths
    if not paths:
        return (
            f"with {protocol} the allocation leaves nothing for it: ask for less "
            "(--set flows.NAME.requested_bps=…), or take --allocation fair"
        )
    if most is not None and paths > most:
        return f"{paths} paths are allocated to it, and a flow of {protocol} has at most {most}"
    return None
