"""Globally optimal multipath routing (GOMR): which flow sends how much over which path.

`solve(Problem) -> Allocation` is a pure function of data. Nothing here knows OpenFlow, hosts or goodput:
rates are wire rates, nodes are names. The folder's README.md says what each objective does and by which
formulas.
"""

from controller.gomr.allocation import Allocation, PathRate
from controller.gomr.columns import DemandColumns
from controller.gomr.live.churn import Churn
from controller.gomr.live.engine import Change, LiveEngine
from controller.gomr.live.moves import Moves, bounded_moves
from controller.gomr.networkx_graph import from_networkx
from controller.gomr.objectives import OBJECTIVES
from controller.gomr.problem import Demand, Edge, Problem, from_network
from controller.gomr.solving import DEFAULT_ENGINE, ENGINES, solve

__all__ = [
    "DEFAULT_ENGINE",
    "ENGINES",
    "OBJECTIVES",
    "Allocation",
    "Change",
    "Churn",
    "Demand",
    "DemandColumns",
    "Edge",
    "LiveEngine",
    "Moves",
    "PathRate",
    "Problem",
    "bounded_moves",
    "from_network",
    "from_networkx",
    "solve",
]
