"""What applications send: each workload is one file, with its schema and its decisions."""

from __future__ import annotations

from experiments.workloads.base import Asking, Decision, Ended, Simulated, WorkloadBase
from experiments.workloads.bulk import Bulk
from experiments.workloads.cbr import Cbr
from experiments.workloads.onoff import OnOff
from experiments.workloads.registry import WORKLOADS, Workload, register
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
