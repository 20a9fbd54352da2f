"""The engines by name; each is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.errors import UnknownName

if TYPE_CHECKING:  # the processes that simulate import this package, and little else
    from experiments.engines.base import Engine

NAMES = ("live", "virtual", "sim")


def get(name: str) -> Engine:
    """Return an engine; UnknownName lists those that are there."""
    if name == "live":
        from experiments.engines.live.engine import LiveEngine

        return LiveEngine()
    if name == "virtual":
        from experiments.engines.virtual.engine import VirtualEngine

        return VirtualEngine()
    if name == "sim":
        from experiments.engines.sim.engine import SimEngine

        return SimEngine()
    raise UnknownName("engine", name, NAMES)
