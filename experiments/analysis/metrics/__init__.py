"""The metrics of flows by name."""

from __future__ import annotations

from experiments.analysis.metrics import fields as _fields
from experiments.analysis.metrics.base import Kept, MetricSpec
from experiments.analysis.metrics.registry import (
    METRICS,
    further_names,
    keep_further,
    metrics_of,
    register,
    value_of,
)

__all__ = [
    "METRICS",
    "Kept",
    "MetricSpec",
    "further_names",
    "keep_further",
    "metrics_of",
    "register",
    "value_of",
]

_BUILT_IN = (_fields,)
