"""Globally optimal multipath routing (GOMR): which flow sends how much over which path, exactly and proved.

    solution = gomr.solve(graph, {("Paris", "Nice"): 9.0}, objective="max_min")

`solve` takes graphs and traffic matrices as programs hold them (networkx, dicts, NumPy, pandas, SciPy) and
returns a `Solution`; `Engine` keeps one at its optimum while flows and links change. Below is data: a
`Problem` of `Edge` and `Demand` objects, and pure functions of it. The folder's README.md says what each
objective does and by which formulas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gomr.allocation import Allocation, PathRate
    from gomr.api import problem_of, solve, solve_series
    from gomr.backups import Backup, backup_paths
    from gomr.columns import DemandColumns
    from gomr.errors import GomrError, InvalidProblem, SolverError
    from gomr.failures import link_failures, node_failures, survey_failures
    from gomr.graphs import from_networkx
    from gomr.live.engine import Engine, EventResult
    from gomr.live.moves import Moves, bounded_moves
    from gomr.live.reallocation import Reallocation
    from gomr.load import at_load
    from gomr.networks import from_network
    from gomr.objectives import OBJECTIVES
    from gomr.planning.priorities import Priorities, solve_priorities
    from gomr.planning.robust import FailureProof, RobustSplits, failure_proof, robust_splits
    from gomr.planning.segments import SegmentRouting, solve_segments
    from gomr.planning.upgrade import Upgrade, least_upgrade
    from gomr.problem import Demand, Edge, Problem
    from gomr.solution import Certificate, Solution
    from gomr.solving import DEFAULT_ENGINE, ENGINES

_NAMES_OF_MODULE = {
    "allocation": ("Allocation", "PathRate"),
    "api": ("problem_of", "solve", "solve_series"),
    "backups": ("Backup", "backup_paths"),
    "columns": ("DemandColumns",),
    "errors": ("GomrError", "InvalidProblem", "SolverError"),
    "failures": ("link_failures", "node_failures", "survey_failures"),
    "graphs": ("from_networkx",),
    "live.reallocation": ("Reallocation",),
    "live.engine": ("EventResult", "Engine"),
    "live.moves": ("Moves", "bounded_moves"),
    "load": ("at_load",),
    "networks": ("from_network",),
    "objectives": ("OBJECTIVES",),
    "planning.priorities": ("Priorities", "solve_priorities"),
    "planning.robust": ("FailureProof", "RobustSplits", "failure_proof", "robust_splits"),
    "planning.segments": ("SegmentRouting", "solve_segments"),
    "planning.upgrade": ("Upgrade", "least_upgrade"),
    "problem": ("Demand", "Edge", "Problem"),
    "solution": ("Certificate", "Solution"),
    "solving": ("DEFAULT_ENGINE", "ENGINES"),
}
"""Where each name is; it is loaded when it is first used, so that importing `gomr.errors` loads no NumPy."""
_MODULE_OF = {name: home for home, names in _NAMES_OF_MODULE.items() for name in names}

__all__ = [
    "DEFAULT_ENGINE",
    "ENGINES",
    "OBJECTIVES",
    "Allocation",
    "Backup",
    "Certificate",
    "Demand",
    "DemandColumns",
    "Edge",
    "Engine",
    "EventResult",
    "FailureProof",
    "GomrError",
    "InvalidProblem",
    "Moves",
    "PathRate",
    "Priorities",
    "Problem",
    "Reallocation",
    "RobustSplits",
    "SegmentRouting",
    "Solution",
    "SolverError",
    "Upgrade",
    "at_load",
    "backup_paths",
    "bounded_moves",
    "failure_proof",
    "from_network",
    "from_networkx",
    "least_upgrade",
    "link_failures",
    "node_failures",
    "problem_of",
    "robust_splits",
    "solve",
    "solve_priorities",
    "solve_segments",
    "solve_series",
    "survey_failures",
]


def __getattr__(name: str) -> Any:
    """Load what a name stands for (PEP 562)."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gomr' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"gomr.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
