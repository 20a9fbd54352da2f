"""Proof of how much any allocation can admit: a bound from edge prices, whoever made the prices.

Give every edge e a price y_e >= 0 per bit/s. By the duality of linear programming, no allocation admits more
than

    sum over edges e of  c_e y_e  +  sum over demands d of  r_d max(0, 1 - l_d(y))

with useful capacity c_e, request r_d, and l_d(y) the price of demand d's cheapest path, where one bit/s of
data pays y_e on each edge and, for its acknowledgements, `ack_ratio` times the price of the reverse edge (or
of the demand's `ack_edges`). The bound needs no trust in a solver: it holds for any prices, and for the
optimal ones of the linear programme it equals the optimum.

Source: L. R. Ford and D. R. Fulkerson, "A Suggested Computation for Maximal Multi-Commodity Network Flows",
Management Science 5 (1958), for the pricing of paths by shortest paths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from controller.gomr.graph import Graph, ShortestTree
from controller.gomr.problem import Demand, Edge, Problem


def upper_bound_bps(problem: Problem, prices: Mapping[str, float]) -> float:
    """Return a rate that no allocation can exceed.

    Limits on the number of paths are not used: the bound holds for allocations that split as they like.
    Demands with fixed paths are held to them.

    Args:
        problem: The problem.
        prices: A price for each edge id; negative and missing ones count as 0.

    Returns:
        The bound in bit/s.
    """
    price = {edge.id: _price(edge, prices) for edge in problem.edges}
    graph = Graph(problem.edges, problem.endpoints)
    trees: dict[tuple[str, float], ShortestTree] = {}
    parts = [problem.useful_capacity_bps(edge) * price[edge.id] for edge in problem.edges]
    for demand in problem.demands:
        cheapest = _cheapest(problem, demand, price, graph, trees)
        parts.append(demand.rate_bps * max(0.0, 1.0 - cheapest))
    return math.fsum(parts)


def _price(edge: Edge, prices: Mapping[str, float]) -> float:
    price = max(0.0, prices.get(edge.id, 0.0))
    # Without capacity any price is free; 1 is enough to close the edge.
    return price if edge.capacity_bps > 0 else max(1.0, price)


def _cheapest(
    problem: Problem,
    demand: Demand,
    price: Mapping[str, float],
    graph: Graph,
    trees: dict[tuple[str, float], ShortestTree],
) -> float:
    """Return the price of the demand's cheapest path; `trees` keeps what demands can share."""

    def length(edge: Edge) -> float:
        if demand.reverse_ack_ratio == 0 or problem.reverse is None:
            return price[edge.id]
        return price[edge.id] + demand.ack_ratio * price[problem.reverse[edge.id]]

    acks = demand.ack_ratio * math.fsum(price[edge_id] for edge_id in demand.ack_edges or ())
    if demand.fixed_paths is not None:
        by_id = problem.edges_by_id
        return acks + min(
            math.fsum(length(by_id[edge_id]) for edge_id in path) for path in demand.fixed_paths
        )
    key = (demand.source, demand.reverse_ack_ratio)
    if key not in trees:
        trees[key] = graph.shortest_tree(demand.source, length)
    return acks + trees[key].distance(demand.destination)
