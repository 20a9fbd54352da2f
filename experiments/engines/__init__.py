"""The engines by name."""

from __future__ import annotations

import importlib
from typing import Any

from experiments.engines.registry import ENGINES, EngineEntry, get, register

__all__ = ["ENGINES", "EngineEntry", "get", "register"]


def _class(place: str) -> Any:
    """Return a class of this package, imported when it is first needed."""
    module, name = place.split(":")
    return getattr(importlib.import_module(f"experiments.{module}"), name)


def _register(name: str, engine: str, place: str, description: str, uses_clusters: bool = False) -> None:
    def make(scheduler: str | None) -> Any:
        return _class(f"engines.{engine}")(*([scheduler] if uses_clusters else []))

    register(EngineEntry(name, make, lambda: _class(f"places.{place}")(), uses_clusters, description))


_register(
    *("live", "live.engine:LiveEngine", "namespaces:Namespaces"),
    "Mininet, Open vSwitch, the controller and kernel TCP in real time (needs root)",
)
_register(
    *("virtual", "virtual.engine:VirtualEngine", "virtual.place:VirtualKernel"),
    "the live engine in virtual time, in a kernel of its own: the same bytes under any load",
)
_register(
    *("sim", "sim.engine:SimEngine", "in_process:InProcess"),
    "packet-level simulator (crates/netsim): no root, the same bytes for the same seed",
    uses_clusters=True,
)
