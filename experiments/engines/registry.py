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
    """An engine by its name.

    Attributes:
        name: As in `--engine`.
        make: Returns one, given the address of the cluster that makes its runs, or None for this machine.
        place: Returns the place that its runs belong in (`experiments.places`).
        uses_clusters: Whether a cluster can make its runs.
        description: For people, in a line; known also where the engine cannot be made.
    """

    name: str
    make: Callable[[str | None], Engine]
    place: Callable[[], Place]
    uses_clusters: bool = False
    description: str = ""


ENGINES: Registry[EngineEntry] = Registry("engine")
register = ENGINES.register


def get(name: str, scheduler: str | None = None) -> Engine:
    """Return an engine.

    Args:
        name: of the engine.
        scheduler: address of a cluster that makes its runs; None for this machine.

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
