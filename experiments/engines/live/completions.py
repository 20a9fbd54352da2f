"""What a flow's workload adds to its result: completion times, and the goodput while it was active."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import metrics
from experiments.engines.live.child import ChildFailed
from experiments.engines.live.traffic import Transfer
from experiments.metrics import NANOSECONDS, Log, Window
from experiments.results import TransferCounts
from experiments.workloads import Bulk, OnOff, Requests, on_time_s


def workload_results(transfer: Transfer, reads: Log, window: Window) -> dict[str, Any]:
    """Return the fields of a flow's result that depend on its workload.

    Args:
        transfer: a finished transfer.
        reads: its sink's log.
        window: the measurement.

    Raises:
        ChildFailed: requests did not arrive as they were made.
    """
    workload = transfer.flow.flow.workload
    found: dict[str, Any] = {"workload": workload.model_dump(mode="json")}
    if isinstance(workload, Bulk):
        return {**found, **_bulk(workload, transfer, reads, window)}
    if isinstance(workload, OnOff):
        begin_s, end_s = (
            (time_ns - transfer.start_ns) * NANOSECONDS for time_ns in (window.start_ns, window.end_ns)
        )
        on_s = on_time_s(workload, begin_s, end_s, transfer.source.seed)
        return {**found, "active_goodput_bps": _over(reads, window, on_s)}
    if isinstance(workload, Requests):
        return {**found, **_requests(transfer, reads, window)}
    return found


def _bulk(workload: Bulk, transfer: Transfer, reads: Log, window: Window) -> dict[str, Any]:
    start_ns = transfer.start_ns
    times_s = metrics.completion_times(reads, np.array([start_ns]), np.array([workload.size_bytes]))
    completion_s = float(times_s[0]) if times_s.size else None
    end_ns = window.end_ns if completion_s is None else start_ns + round(completion_s / NANOSECONDS)
    active_ns = min(end_ns, window.end_ns) - max(start_ns, window.start_ns)
    return {
        "completion_s": completion_s,
        "transfers": TransferCounts(started=int(start_ns < window.end_ns), completed=len(times_s)),
        "active_goodput_bps": _over(reads, window, active_ns * NANOSECONDS),
    }


def _requests(transfer: Transfer, reads: Log, window: Window) -> dict[str, Any]:
    made, arrived = transfer.received["request_bytes_written"], transfer.sent["request_bytes_read"]
    if made != arrived:
        raise ChildFailed(f"flow {transfer.name}: {made} bytes of requests were sent and {arrived} arrived")
    asked_ns, end_offset = transfer.requests()
    # Requests of the warm-up do not count; the sink asks for nothing after the end.
    counts = asked_ns >= window.start_ns
    times_s = metrics.completion_times(reads, asked_ns[counts], end_offset[counts])
    return {
        "transfers": TransferCounts(started=int(counts.sum()), completed=len(times_s)),
        "fct_s": metrics.completion_statistics(times_s),
    }


def _over(reads: Log, window: Window, active_s: float) -> float | None:
    """Return what was read within the window, as a rate over the time that the source was active."""
    return metrics.goodput_bps(reads, window) * window.duration_s / active_s if active_s > 0 else None
