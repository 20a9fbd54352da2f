"""The optimum that moves running flows least.

An engine finds one optimum of many. The flows that are there as they were before stay so. The others, the
movers, share what those leave; of all optima (`gomr_native.Engine.face`) one is chosen in two steps:

1. As many movers as can stay together stay as they were after all, exactly: a linear programme minimises
   the rate moved, and every flow that moves in it is then tried once more, together with all that stay. So no
   flow moves that an optimum could leave alone without moving another that stays.
2. The rest moves as little rate as it can. A bit/s taken off a path counts 1, one put on a path that the flow
   has counts 1, and one put on another path counts 2.

A programme has the movers alone, so an event costs by how many there are and not by the flows that run; where
all of them can stay there is none at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.errors import SolverError
from controller.gomr.engines.highs.program import Program

Arcs = tuple[int, ...]
FlowRates = Mapping[Arcs, float]
"""The rate of each path of a flow in bit/s; a path is the numbers of its edges."""
Loads = list[tuple[int, float]]
"""Load on each arc per bit/s of data."""
Face = tuple[
    list[tuple[float, bool]],
    list[float],
    list[tuple[list[tuple[int, float]], bool, list[tuple[list[int], Loads]]]],
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


_STAYS = 1e-11
"""Over a bound by no more than this share of it is rounding."""


@dataclass(frozen=True)
class Movers:
    """Flows that an engine has elsewhere than they are, with all optima as far as they concern them.

    Attributes:
        face: The optima.
        found: The rates of each mover in the optimum found, by its number; these are on the face.
        before: The rates of those that were there before.
        changed: Those that have changed themselves: they stay near what they had, but may move.
    """

    face: Face
    found: Mapping[int, FlowRates]
    before: Mapping[int, FlowRates]
    changed: frozenset[int]

    def parts(self) -> Iterable[tuple[int, float, bool, dict[Arcs, Loads]]]:
        """Yield flow, rate asked for, whether every optimum gives it, and paths for each part of a mover."""
        for members, full, paths in self.face[2]:
            own = {tuple(path): loads for path, loads in paths}
            for flow, asked_bps in members:
                if flow in self.found:
                    yield flow, asked_bps, full, own

    def loads_bps(self, rates: Mapping[int, FlowRates]) -> dict[int, float]:
        """Return the load on each arc that rates of the movers make; paths off the face count for nothing."""
        own: dict[int, dict[Arcs, Loads]] = {}
        for flow, _, _, paths in self.parts():
            own.setdefault(flow, {}).update(paths)
        total: dict[int, float] = {}
        for flow, paths in own.items():
            for path, rate_bps in rates.get(flow, {}).items():
                for arc, load in paths.get(path, ()):
                    total[arc] = total.get(arc, 0.0) + load * rate_bps
        return total

    def room_bps(self) -> dict[int, float]:
        """Return what flows that do not move leave the movers of each arc that these load."""
        free_bps = self.face[1]
        return {arc: load_bps + free_bps[arc] for arc, load_bps in self.loads_bps(self.found).items()}


def least_churn(movers: Movers, program: Callable[[], Program]) -> dict[int, dict[Arcs, float]]:
    """Choose the optimum that moves flows least.

    Args:
        movers: The flows.
        program: Makes an empty programme.

    Returns:
        The rates of every mover on the face; those of flows that stay are the very ones given.

    Raises:
        OutOfTime: The time is up.
        SolverError: HiGHS failed.
    """
    stay = {flow: rates for flow, rates in movers.before.items() if flow not in movers.changed}
    on_face = {flow for flow, _, _, _ in movers.parts()}
    wanted = {flow: dict(stay.get(flow, movers.found[flow])) for flow in on_face}
    if _is_optimal(movers, wanted):
        return wanted
    largest_bps = max((rate for rates in movers.found.values() for rate in rates.values()), default=0.0)
    model = _Model(movers, largest_bps or 1.0, program())
    model.minimise_moves(model.flows)
    model.expect_new_costs()
    moved = [flow for flow in model.flows if not model.settle_if_kept(flow)]
    tried = [flow for flow in moved if flow not in movers.changed and model.could_stay(flow)]
    for flow in tried:
        model.minimise_moves([flow])
        model.settle_if_kept(flow)
    if tried:
        model.minimise_moves(model.flows)
    return model.rates()


def _is_optimal(movers: Movers, rates: Mapping[int, FlowRates]) -> bool:
    """Return whether the movers' rates are on the face."""
    least: dict[int, float] = {}
    most: dict[int, float] = {}
    paths: dict[int, set[Arcs]] = {}
    for flow, asked_bps, full, own in movers.parts():
        least[flow] = least.get(flow, 0.0) + (asked_bps if full else 0.0)
        most[flow] = most.get(flow, 0.0) + asked_bps
        paths.setdefault(flow, set()).update(own)
    for flow, own_rates in rates.items():
        total_bps, rounding_bps = math.fsum(own_rates.values()), _STAYS * most.get(flow, 0.0)
        if not least.get(flow, 0.0) - rounding_bps <= total_bps <= most.get(flow, 0.0) + rounding_bps:
            return False
        if not paths.get(flow, set()).issuperset(own_rates):
            return False
    room_bps, loads_bps = movers.room_bps(), movers.loads_bps(rates)
    for arc in room_bps.keys() | loads_bps.keys():
        capacity_bps, full = movers.face[0][arc]
        over_bps = loads_bps.get(arc, 0.0) - room_bps.get(arc, movers.face[1][arc])
        if over_bps > _STAYS * capacity_bps or (full and over_bps < -_STAYS * capacity_bps):
            return False
    return True


class _Model:
    """The optima as a linear programme: a variable for each mover, path and part of a request.

    Attributes:
        flows: The flows that are on the face and were there before.
    """

    def __init__(self, movers: Movers, unit_bps: float, program: Program) -> None:
        self._unit_bps = unit_bps
        self._program = program
        self._before = movers.before
        self._paths: dict[int, dict[Arcs, list[int]]] = {}
        self._loads: dict[int, dict[int, float]] = {}
        for flow, asked_bps, full, paths in movers.parts():
            self._add_part(flow, asked_bps / self._unit_bps, full, paths)
        room_bps = movers.room_bps()
        for arc, terms in self._loads.items():
            _, full = movers.face[0][arc]
            room = room_bps.get(arc, movers.face[1][arc]) / self._unit_bps
            program.row(terms, upper=room, lower=room if full else -math.inf)
        self.flows = [flow for flow in self._paths if flow in movers.before]
        self._kept: dict[int, dict[Arcs, int]] = {}
        self._total: dict[int, int] = {}
        self._stays: set[int] = set()
        for flow in self.flows:
            self._add_kept(flow)

    def expect_new_costs(self) -> None:
        """Go on from the last solution when costs change."""
        self._program.expect_new_costs()

    def _add_part(self, flow: int, asked: float, full: bool, paths: Mapping[Arcs, Loads]) -> None:
        variables = self._program.variables(len(paths), upper=math.inf)
        self._program.row(dict.fromkeys(variables, 1.0), upper=asked, lower=asked if full else -math.inf)
        own = self._paths.setdefault(flow, {})
        for variable, (path, loads) in zip(variables, paths.items(), strict=True):
            own.setdefault(path, []).append(variable)
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
