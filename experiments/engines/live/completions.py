"""What a flow's workload adds to its result: completion times, and the goodput while it was active."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.analysis.logs import Log, Window
from experiments.analysis.measuring import measured_fields
from experiments.engines.live.child import ChildFailed
from experiments.engines.live.traffic import Transfer
from experiments.workloads import Ended


def workload_results(transfer: Transfer, writes: Log, reads: Log, window: Window) -> dict[str, Any]:
    """Return the fields of a flow's result that depend on its workload.

    Raises:
        ChildFailed: requests did not arrive as they were made.
    """
    workload = transfer.flow.flow.workload
    none = np.empty(0, dtype=np.int64)
    asked_ns, end_offset = none, none
    if workload.asking is not None:
        made, arrived = transfer.received["request_bytes_written"], transfer.sent["request_bytes_read"]
        if made != arrived:
            raise ChildFailed(
                f"flow {transfer.name}: {made} bytes of requests were sent and {arrived} arrived"
            )
        asked_ns, end_offset = transfer.requests()
    ended = Ended(writes, reads, window, transfer.start_ns, transfer.source.seed, asked_ns, end_offset)
    return {"workload": workload.model_dump(mode="json"), **measured_fields(workload, ended)}
