"""Where a job's worker runs: in this process, in namespaces of its own, or in a kernel in virtual time.

A place is given a job and an engine and reports the same events and leaves the same files, wherever it is.
"""

from __future__ import annotations

from experiments.engines.registry import ENGINES
from experiments.places.base import Place


def of(engine: str) -> Place:
    """Return the place that an engine's runs belong in; UnknownName lists the engines."""
    return ENGINES.find(engine).place()
