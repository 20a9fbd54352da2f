"""Errors of the solver. Catch `GomrError` for both of them.

GomrError
├── InvalidProblem   a routing problem that contradicts itself; carries `field`
└── SolverError      the solver failed on a valid problem; carries `engine`
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GomrError", "InvalidProblem", "SolverError"]


class GomrError(Exception):
    """Root of the solver's errors."""


class InvalidProblem(GomrError):
    """A routing problem that contradicts itself.

    Attributes:
        field: The part of the problem that is to blame, as `demands[f1].rate_bps`.
        reason: What is wrong with it, as a sentence.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class SolverError(GomrError):
    """The solver failed on a valid problem.

    Attributes:
        engine: Name of the engine, as `pulp`.
        reason: What it reported, as a sentence.
        state: How far it had come, by name, as {"stage": "levels", "solves": 3}: what it was solving for,
            programmes solved or pivots made, columns known, the last programme's objective, and value, bound
            and gap of the last proof, as far as the engine knows them. No answer is among it.
    """

    def __init__(self, engine: str, reason: str, state: Mapping[str, float | str] | None = None) -> None:
        super().__init__(engine, reason)
        self.engine = engine
        self.reason = reason
        self.state = dict(state or {})

    def __str__(self) -> str:
        known = ", ".join(
            f"{name} {value}" if isinstance(value, str) else f"{name} {value:g}"
            for name, value in self.state.items()
        )
        return f"{self.engine}: {self.reason}" + (f" (state: {known})" if known else "")
