"""The engines by name; each is imported when it is asked for."""

from __future__ import annotations

from experiments.engines.base import Engine
from experiments.errors import UnknownName

NAMES = ("live",)


def get(name: str) -> Engine:
    """Return an engine; UnknownName lists those that are there."""
    if name == "live":
        from experiments.engines.live.engine import LiveEngine

        return LiveEngine()
    raise UnknownName("engine", name, NAMES)
