"""The workloads that were registered, and the type of a scenario's field that takes any of them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, SerializeAsAny

from experiments.registry import Kinds
from experiments.workloads.base import WorkloadBase

WORKLOADS: Kinds[WorkloadBase] = Kinds("workload")
register = WORKLOADS.register_kind

Workload: TypeAlias = Annotated[SerializeAsAny[WorkloadBase], BeforeValidator(WORKLOADS.parse)]
"""A table whose `kind` is that of a workload that was registered."""
