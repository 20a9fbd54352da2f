"""The engines by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.engines.registry import ENGINES, EngineEntry, get, register

if TYPE_CHECKING:
    from experiments.engines.base import Engine
    from experiments.places.base import Place

__all__ = ["ENGINES", "EngineEntry", "get", "register"]


def _live(scheduler: str | None) -> Engine:
    from experiments.engines.live.engine import LiveEngine

    del scheduler
    return LiveEngine()


def _namespaces() -> Place:
    from experiments.places.namespaces import Namespaces

    return Namespaces()


def _virtual(scheduler: str | None) -> Engine:
    from experiments.engines.virtual.engine import VirtualEngine

    del scheduler
    return VirtualEngine()


def _virtual_kernel() -> Place:
    from experiments.places.virtual.place import VirtualKernel

    return VirtualKernel()


def _sim(scheduler: str | None) -> Engine:
    from experiments.engines.sim.engine import SimEngine

    return SimEngine(scheduler)


def _in_process() -> Place:
    from experiments.places.in_process import InProcess

    return InProcess()


register(EngineEntry("live", _live, _namespaces))
register(EngineEntry("virtual", _virtual, _virtual_kernel))
register(EngineEntry("sim", _sim, _in_process, uses_clusters=True))
