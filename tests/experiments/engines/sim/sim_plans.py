"""Plans for the simulator's tests."""

from __future__ import annotations

from typing import Any

import topologies
from experiments.model import overrides, scenario
from experiments.model.plan import RunPlan


def plan_of(protocol: str, case: str = "2", seed: int = 1, duration_s: float = 5.0, **sets: Any) -> RunPlan:
    """Return a run of the butterfly; `sets` are overrides with `__` for the dot."""
    values = {key.replace("__", "."): value for key, value in sets.items()}
    changed = overrides.apply(scenario.load("butterfly"), values, [case])
    return RunPlan(
        scenario=changed,
        network=topologies.load("butterfly", variant=changed.variant),
        case_name=case,
        protocol=protocol,
        seed=seed,
        duration_s=duration_s,
    )
