"""PPFS in the switch: an XDP program at a port draws a path for each packet of a flow and stamps it.

    with Splitter("s0-eth1") as splitter:
        flow = FlowKey("10.0.0.1", "10.0.0.3", 40000, 5001)
        splitter.set(flow, shares=[0.85, 0.15], stamps=["0a:50:50:00:01:00", "0a:50:50:00:01:01"])
        splitter.counters(flow)  # [(packets, bytes), (packets, bytes)]

The switches forward by the stamp, and the last one restores the Ethernet source (docs/ppfs.md).
"""

from switch.errors import BpfFailed, BpfUnavailable, InvalidSplit
from switch.ppfs.split import MAX_FLOWS, MAX_PATHS, FlowKey, thresholds
from switch.ppfs.splitter import Splitter

__all__ = [
    "MAX_FLOWS",
    "MAX_PATHS",
    "BpfFailed",
    "BpfUnavailable",
    "FlowKey",
    "InvalidSplit",
    "Splitter",
    "thresholds",
]
