"""The kinds of traces that were registered, and the type of a scenario's field that takes any of them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, SerializeAsAny

from experiments.registry import Kinds
from experiments.traces.base import TraceBase

TRACES: Kinds[TraceBase] = Kinds("trace")
register = TRACES.register_kind

Trace: TypeAlias = Annotated[SerializeAsAny[TraceBase], BeforeValidator(TRACES.parse)]
"""A table whose `kind` is that of a trace that was registered."""
