"""The workloads that were registered, and the type of a scenario's field that takes any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, SerializeAsAny

from experiments.registry import Registry
from experiments.workloads.base import WorkloadBase


@dataclass(frozen=True)
class WorkloadEntry:
    """A workload by the value of its `kind`."""

    name: str
    model: type[WorkloadBase]


WORKLOADS: Registry[WorkloadEntry] = Registry("workload")


def register(model: type[WorkloadBase]) -> type[WorkloadBase]:
    """Add a workload, by the default of its `kind`; decorates its class."""
    WORKLOADS.register(WorkloadEntry(model.model_fields["kind"].default, model))
    return model


def _of_kind(value: Any) -> Any:
    """Return the workload that a table stands for; one that is there already as it is."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    entry = WORKLOADS.get(kind) if isinstance(kind, str) else None
    if entry is None:
        raise ValueError(f"there is no workload of kind {kind!r}; known are {', '.join(WORKLOADS)}")
    return entry.model.model_validate(value)


Workload: TypeAlias = Annotated[SerializeAsAny[WorkloadBase], BeforeValidator(_of_kind)]
"""A table whose `kind` is that of a workload that was registered."""
