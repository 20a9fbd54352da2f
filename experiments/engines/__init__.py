"""The engines by name; each is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.errors import MissingRequirement, UnknownName

if TYPE_CHECKING:  # the processes that simulate import this package, and little else
    from experiments.engines.base import Engine

NAMES = ("live", "virtual", "sim")


SIMULATED = "sim"
"""The one whose runs a cluster can make."""


def get(name: str, scheduler: str | None = None) -> Engine:
    """Return an engine.

    Args:
        name: of the engine.
        scheduler: address of a cluster that makes its runs; None for this machine.

    Raises:
        UnknownName: there is none of this name.
        MissingRequirement, ClusterUnreachable: there is no such cluster.
    """
    if scheduler is not None and name in NAMES and name != SIMULATED:
        raise MissingRequirement(
            f"Runs of the {name} engine are made on this machine.",
            "Leave --scheduler out, or take --engine sim.",
        )
    if name == "live":
        from experiments.engines.live.engine import LiveEngine

        return LiveEngine()
    if name == "virtual":
        from experiments.engines.virtual.engine import VirtualEngine

        return VirtualEngine()
    if name == "sim":
        from experiments.engines.sim.engine import SimEngine

        return SimEngine(scheduler)
    raise UnknownName("engine", name, NAMES)
