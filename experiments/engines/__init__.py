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


register(
    EngineEntry(
        "live",
        lambda _: _class("engines.live.engine:LiveEngine")(),
        lambda: _class("places.namespaces:Namespaces")(),
        description="Mininet, Open vSwitch, the controller and kernel TCP in real time (needs root)",
    )
)
register(
    EngineEntry(
        "virtual",
        lambda _: _class("engines.virtual.engine:VirtualEngine")(),
        lambda: _class("places.virtual.place:VirtualKernel")(),
        description="the live engine in virtual time, in a kernel of its own: the same bytes under any load",
    )
)
register(
    EngineEntry(
        "sim",
        lambda scheduler: _class("engines.sim.engine:SimEngine")(scheduler),
        lambda: _class("places.in_process:InProcess")(),
        uses_clusters=True,
        description="packet-level simulator (crates/netsim): no root, the same bytes for the same seed",
    )
)
