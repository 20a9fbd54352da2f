"""What applications send: the schema of workloads, distributions of sizes, and decisions when to write."""

from experiments.workloads.decisions import Decision, decisions, on_time_s, request_sizes, think_times
from experiments.workloads.schema import Bulk, Cbr, OnOff, Requests, Sizes, Workload

__all__ = [
    "Bulk",
    "Cbr",
    "Decision",
    "OnOff",
    "Requests",
    "Sizes",
    "Workload",
    "decisions",
    "on_time_s",
    "request_sizes",
    "think_times",
]
