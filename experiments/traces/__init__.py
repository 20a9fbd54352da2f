"""How a link changes over time: each kind of trace is one file, read the same way by every engine."""

from __future__ import annotations

from experiments.traces.base import TRACES, LinkSettings, Step, Trace, TraceBase, register
from experiments.traces.csv_text import CsvTrace
from experiments.traces.mahimahi import Mahimahi

__all__ = ["TRACES", "CsvTrace", "LinkSettings", "Mahimahi", "Step", "Trace", "TraceBase", "register"]
