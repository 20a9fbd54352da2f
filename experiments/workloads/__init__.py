"""What applications send: each workload is one file, with its schema and its decisions."""

from __future__ import annotations

from experiments.workloads.base import (
    WORKLOADS,
    Asking,
    Decision,
    Ended,
    Simulated,
    Workload,
    WorkloadBase,
    register,
)
from experiments.workloads.bulk import Bulk
from experiments.workloads.cbr import Cbr
from experiments.workloads.onoff import OnOff
from experiments.workloads.requests import Requests
from experiments.workloads.sizes import Sizes

__all__ = [
    "WORKLOADS",
    "Asking",
    "Bulk",
    "Cbr",
    "Decision",
    "Ended",
    "OnOff",
    "Requests",
    "Simulated",
    "Sizes",
    "Workload",
    "WorkloadBase",
    "register",
]
