"""The engines that were registered; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.errors import MissingRequirement
from experiments.registry import Registry

if TYPE_CHECKING:  # the processes that simulate import this package, and little else
    from experiments.engines.base import Engine
    from experiments.places.base import Place


@dataclass(frozen=True)
class EngineEntry:
    """An engine by its name; `make` is given the address of the cluster that makes its runs, or None.

    `place` returns where its runs belong (`experiments.places`); the description is known also where it
    cannot be made.
    """

    name: str
    make: Callable[[str | None], Engine]
    place: Callable[[], Place]
    uses_clusters: bool = False
    description: str = ""


ENGINES: Registry[EngineEntry] = Registry("engine")
register = ENGINES.register


def get(name: str, scheduler: str | None = None) -> Engine:
    """Return an engine, whose runs the cluster at an address makes if one is given.

    Raises:
        UnknownName: there is none of this name.
        MissingRequirement, ClusterUnreachable: there is no such cluster.
    """
    entry = ENGINES.find(name)
    if scheduler is not None and not entry.uses_clusters:
        others = " or ".join(each.name for each in ENGINES.values() if each.uses_clusters)
        raise MissingRequirement(
            f"Runs of the {name} engine are made on this machine.",
            f"Leave --scheduler out, or take --engine {others}.",
        )
    return entry.make(scheduler)
