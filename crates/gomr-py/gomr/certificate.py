"""Proof of how good an allocation is: bounds from edge prices, whoever made the prices.

Give every edge e a price y_e >= 0 per bit/s, and let l_d(y) be the price of demand d's cheapest path, where
one bit/s of data pays y_e on each edge and, for its acknowledgements, `ack_ratio` times the price of the
reverse edge (or of the demand's `ack_edges`). By the duality of linear programming, no allocation admits
more than

    sum over edges e of  c_e y_e  +  sum over demands d of  r_d max(0, 1 - l_d(y))

with useful capacity c_e and useful request r_d (no more than the edges at its ends can carry). Where parts of
a request are worth different amounts, as under `fair`, r_d max(0, 1 - l_d) becomes the sum over d's parts of
rate times max(0, worth - l_d). The bound needs no trust in a solver: it holds for any prices, and for the
optimal ones of the linear programme it equals the optimum.

Under `max_min` the same prices cut: every allocation has  sum of l_d(y) x_d <= sum of c_e y_e.  So while the
demands with less per weight keep their rates, a demand cannot get more than what they leave of the cut.

Source: L. R. Ford and D. R. Fulkerson, "A Suggested Computation for Maximal Multi-Commodity Network Flows",
Management Science 5 (1958), for the pricing of paths by shortest paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from gomr.engines.answer import Answer, Cut
from gomr.objectives import PLAIN, Objective
from gomr.paths.delay_limit import cheapest_within
from gomr.paths.graph import Graph, ShortestTree
from gomr.problem import Demand, Edge, Problem

_SAME_LEVEL = 1e-9
"""Rates per weight that differ by less than this share count as equal."""
_NO_SHARE = 1e-9
"""A demand whose path costs less than this is not in a cut."""


def bound_bps(
    problem: Problem, objective: Objective, answer: Answer, admitted_bps: Mapping[str, float]
) -> float:
    """Return what the first objective of no allocation can exceed.

    Args:
        problem: The problem, without demands that stay at their source.
        objective: The objective.
        answer: What an engine found.
        admitted_bps: The rate of each demand.
    """
    if answer.bound_bps is not None:
        return answer.bound_bps
    if objective.by_level:
        return max_min_bound_bps(problem, answer.cuts, admitted_bps)
    return upper_bound_bps(problem, answer.prices, objective)


def upper_bound_bps(problem: Problem, prices: Mapping[str, float], objective: Objective = PLAIN) -> float:
    """Return a rate (under `fair`: a utility) that no allocation can exceed.

    Limits on the number of paths and disjointness are not used: the bound holds for allocations that split
    as they like. Demands with fixed paths or a delay limit are held to them.

    Args:
        problem: The problem.
        prices: A price for each edge id; negative and missing ones count as 0.
        objective: The objective whose first stage is bounded.

    Returns:
        The bound in bit/s.
    """
    pricing = _Pricing(problem, prices)
    parts = [pricing.room_bps]
    for demand in problem.demands:
        cheapest, most_bps = pricing.cheapest(demand), problem.useful_rate_bps(demand)
        parts += [
            min(rate_bps, most_bps) * max(0.0, worth - cheapest)
            for worth, rate_bps in objective.worths(demand)
        ]
    return math.fsum(parts)


def max_min_bound_bps(problem: Problem, cuts: tuple[Cut, ...], admitted_bps: Mapping[str, float]) -> float:
    """Return the sum of the most that each demand could get while none with less per weight loses.

    It equals the sum of the rates exactly when they are max-min fair.

    Args:
        problem: The problem.
        cuts: What stops the demands; one that no cut stops is bounded by its request alone.
        admitted_bps: The rate of each demand.
    """
    most = {demand.id: demand.rate_bps for demand in problem.demands}
    level = {demand.id: admitted_bps[demand.id] / demand.weight for demand in problem.demands}
    by_id = {demand.id: demand for demand in problem.demands}
    for cut in cuts:
        pricing = _Pricing(problem, cut.prices)
        share = {demand.id: pricing.cheapest(demand) for demand in problem.demands}
        for name in cut.stopped:
            if share[name] <= _NO_SHARE:
                continue
            limit = level[name] * (1 + _SAME_LEVEL)
            kept = math.fsum(
                share[other] * admitted_bps[other]
                for other in by_id
                if other != name and admitted_bps[other] > 0 and level[other] <= limit
            )
            most[name] = min(most[name], max(0.0, pricing.room_bps - kept) / share[name])
    return math.fsum(most.values())


class _Pricing:
    """The prices of paths under some prices of edges."""

    def __init__(self, problem: Problem, prices: Mapping[str, float]) -> None:
        self._problem = problem
        self._price = {edge.id: _price(edge, prices) for edge in problem.edges}
        self._graph = Graph(problem.edges, problem.endpoints)
        self._trees: dict[tuple[str, float], ShortestTree] = {}
        self.room_bps = math.fsum(
            problem.useful_capacity_bps(edge) * self._price[edge.id]
            for edge in problem.edges
            if edge.capacity_bps > 0
        )

    def cheapest(self, demand: Demand) -> float:
        """Return the price of the demand's cheapest path; infinite if it has none."""
        acks = 0.0
        if demand.ack_ratio > 0:
            acks = demand.ack_ratio * math.fsum(self._price[edge_id] for edge_id in demand.ack_edges or ())
        if demand.fixed_paths is not None:
            return acks + min(map(self._fixed(demand), demand.fixed_paths))
        key = (demand.source, demand.reverse_ack_ratio)
        if key not in self._trees:
            self._trees[key] = self._graph.shortest_tree(demand.source, self._length(demand))
        tree = self._trees[key]
        path = tree.path(demand.destination)
        if demand.max_delay_s is None or path is None or not demand.is_too_long(path):
            return acks + tree.distance(demand.destination)
        cheapest = cheapest_within(self._graph, demand, self._length(demand))
        return math.inf if cheapest is None else acks + cheapest[0]

    def _length(self, demand: Demand) -> Callable[[Edge], float]:
        reverse = self._problem.reverse
        if demand.reverse_ack_ratio == 0 or reverse is None:
            return lambda edge: self._price[edge.id]
        return lambda edge: self._price[edge.id] + demand.ack_ratio * self._price[reverse[edge.id]]

    def _fixed(self, demand: Demand) -> Callable[[tuple[str, ...]], float]:
        by_id = self._problem.edges_by_id
        length = self._length(demand)

        def price(path: tuple[str, ...]) -> float:
            edges = [by_id[edge_id] for edge_id in path]
            return math.inf if demand.is_too_long(edges) else math.fsum(map(length, edges))

        return price


def _price(edge: Edge, prices: Mapping[str, float]) -> float:
    # Without capacity any price is free.
    return max(0.0, prices.get(edge.id, 0.0)) if edge.capacity_bps > 0 else math.inf
