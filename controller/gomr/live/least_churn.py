"""The optimum that moves running flows least.

Of all optima, which the compiled engine describes (`Engine.face`), one is chosen in two steps:

1. As many flows as can stay together stay as they are, exactly: a linear programme minimises the rate moved,
   and every flow that moves in it is then tried once more, together with all that stay. So no flow moves that
   an optimum could leave alone without moving another that stays.
2. The rest moves as little rate as it can. A bit/s taken off a path counts 1, one put on a path that the flow
   has counts 1, and one put on another path counts 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from controller.errors import SolverError
from controller.gomr.engines.highs.program import Program

Arcs = tuple[int, ...]
FlowRates = Mapping[Arcs, float]
"""The rate of each path of a flow in bit/s; a path is the numbers of its edges."""
Face = tuple[
    list[tuple[float, bool]],
    list[tuple[list[tuple[int, float]], bool, list[tuple[list[int], list[tuple[int, float]]]]]],
]
"""What `gomr_native.Engine.face` returns."""

_KEPT = 1e-10
"""A flow that moves less than this share of its rate stays."""
_FREE = 1e-9
"""What is left free of a flow that stays where rounding leaves no solution otherwise."""
_DUST = 1e-10
"""Rates up to this, in units, are the solver's rounding."""
_NEW_PATH = 2.0
"""What a bit/s on a path that a flow did not have counts."""


def least_churn(
    face: Face,
    before: Mapping[int, FlowRates],
    may_move: Iterable[int],
    unit_bps: float,
    program: Program,
) -> dict[int, dict[Arcs, float]]:
    """Choose the optimum that moves flows least.

    Args:
        face: All optima.
        before: The rates of flows that were there before, by the flow's number.
        may_move: Those of them that have changed themselves: they stay near what they had, but moving them is
            no churn.
        unit_bps: A rate such as the flows get: the unit of the programme.
        program: An empty programme.

    Returns:
        The rates of every flow on the face; those of flows that stay are the very ones given.

    Raises:
        SolverError: HiGHS failed or ran out of time.
    """
    if not face[1]:
        return {}
    model = _Model(face, before, unit_bps, program)
    model.minimise_moves(model.flows)
    program.expect_new_costs()
    movers = [flow for flow in model.flows if not model.settle_if_kept(flow)]
    fixed = set(may_move)
    for flow in movers:
        if flow not in fixed and model.could_stay(flow):
            model.minimise_moves([flow])
            model.settle_if_kept(flow)
    model.minimise_moves(model.flows)
    return model.rates()


class _Model:
    """The optima as a linear programme: a variable for each flow, path and part of a request.

    Attributes:
        flows: The flows that are on the face and were there before.
    """

    def __init__(
        self, face: Face, before: Mapping[int, FlowRates], unit_bps: float, program: Program
    ) -> None:
        arcs, commodities = face
        self._unit_bps = unit_bps
        self._program = program
        self._before = before
        self._paths: dict[int, dict[Arcs, list[int]]] = {}
        self._loads: dict[int, dict[int, float]] = {}
        for members, full, paths in commodities:
            for flow, asked_bps in members:
                self._add_part(flow, asked_bps / self._unit_bps, full, paths)
        for arc, terms in self._loads.items():
            capacity_bps, full = arcs[arc]
            capacity = capacity_bps / self._unit_bps
            program.row(terms, upper=capacity, lower=capacity if full else -math.inf)
        self.flows = [flow for flow in self._paths if flow in before]
        self._kept: dict[int, dict[Arcs, int]] = {}
        self._total: dict[int, int] = {}
        self._stays: set[int] = set()
        for flow in self.flows:
            self._add_kept(flow)

    def _add_part(
        self, flow: int, asked: float, full: bool, paths: Sequence[tuple[list[int], list[tuple[int, float]]]]
    ) -> None:
        variables = self._program.variables(len(paths), upper=math.inf)
        self._program.row(dict.fromkeys(variables, 1.0), upper=asked, lower=asked if full else -math.inf)
        own = self._paths.setdefault(flow, {})
        for variable, (path, loads) in zip(variables, paths, strict=True):
            own.setdefault(tuple(path), []).append(variable)
            for arc, load in loads:
                terms = self._loads.setdefault(arc, {})
                terms[variable] = terms.get(variable, 0.0) + load

    def _add_kept(self, flow: int) -> None:
        """Add what stays of each path, and the flow's whole rate."""
        own = self._paths[flow]
        kept = {path: rate for path, rate in self._before[flow].items() if path in own}
        variables = self._program.variables(len(kept), upper=math.inf)
        self._kept[flow] = dict(zip(kept, variables, strict=True))
        for (path, rate_bps), variable in zip(kept.items(), variables, strict=True):
            self._program.bound_variable(variable, 0.0, rate_bps / self._unit_bps)
            self._program.row({variable: 1.0, **dict.fromkeys(own[path], -1.0)}, upper=0.0)
        every = [variable for parts in own.values() for variable in parts]
        self._total[flow] = self._program.row(dict.fromkeys(every, 1.0), upper=math.inf)

    def minimise_moves(self, flows: Iterable[int]) -> None:
        """Move as little rate of these flows as can be."""
        costs: dict[int, float] = {}
        for flow in flows:
            if flow in self._stays:
                continue
            costs.update(dict.fromkeys(self._kept[flow].values(), -2.0))
            for path, parts in self._paths[flow].items():
                costs.update(dict.fromkeys(parts, 1.0 if path in self._before[flow] else _NEW_PATH))
        try:
            self._program.minimise(costs)
        except SolverError:
            # Rates that were rounded once may not add up now: what is rounding becomes free.
            for flow in self._stays:
                self._hold(flow, _FREE)
            self._program.minimise(costs)
        self._found = self._program.values()

    def could_stay(self, flow: int) -> bool:
        """Return whether an optimum may use all the paths that the flow has."""
        return len(self._kept[flow]) == len(self._before[flow])

    def settle_if_kept(self, flow: int) -> bool:
        """Let the flow stay for good if the last solution leaves it where it is; return whether it does."""
        if not self.could_stay(flow):
            return False
        before = {path: rate_bps / self._unit_bps for path, rate_bps in self._before[flow].items()}
        whole = math.fsum(before.values())
        moved = math.fsum(
            abs(self._rate(parts) - before.get(path, 0.0)) for path, parts in self._paths[flow].items()
        )
        if moved > _KEPT * whole + _DUST:
            return False
        self._stays.add(flow)
        self._hold(flow, 0.0)
        return True

    def _hold(self, flow: int, free: float) -> None:
        """Hold the flow's rates, but for a share of its whole rate."""
        before = {path: rate_bps / self._unit_bps for path, rate_bps in self._before[flow].items()}
        whole = math.fsum(before.values())
        margin = free * whole + (_DUST if free else 0.0)
        for path, variable in self._kept[flow].items():
            self._program.bound_variable(variable, max(0.0, before[path] - margin), before[path])
        self._program.bound_row(self._total[flow], -math.inf, whole + margin)

    def rates(self) -> dict[int, dict[Arcs, float]]:
        """Return the last solution."""
        found = {}
        for flow, paths in self._paths.items():
            if flow in self._stays:
                found[flow] = dict(self._before[flow])
                continue
            rates = {path: self._rate(parts) for path, parts in paths.items()}
            found[flow] = {path: rate * self._unit_bps for path, rate in rates.items() if rate > _DUST}
        return found

    def _rate(self, parts: Sequence[int]) -> float:
        return math.fsum(float(self._found[variable]) for variable in parts)
