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


_LIVE = "Mininet, Open vSwitch, the controller and kernel TCP in real time (needs root)"
_VIRTUAL = "the live engine in virtual time, in a kernel of its own: the same bytes under any load"
_SIM = "packet-level simulator (crates/netsim): no root, the same bytes for the same seed"

register(EngineEntry("live", _live, _namespaces, description=_LIVE))
register(EngineEntry("virtual", _virtual, _virtual_kernel, description=_VIRTUAL))
register(EngineEntry("sim", _sim, _in_process, uses_clusters=True, description=_SIM))
