"""Where a job's worker runs: in this process, in namespaces of its own, or in a kernel in virtual time.

A place is given a job and an engine and reports the same events and leaves the same files, wherever it is.
"""

from __future__ import annotations

from experiments import engines
from experiments.errors import UnknownName
from experiments.places.base import Place


def of(engine: str) -> Place:
    """Return the place that an engine's runs belong in; UnknownName lists the engines."""
    if engine == "live":
        from experiments.places.namespaces import Namespaces

        return Namespaces()
    if engine == "virtual":
        from experiments.places.virtual.place import VirtualKernel

        return VirtualKernel()
    if engine == "sim":
        from experiments.places.in_process import InProcess

        return InProcess()
    raise UnknownName("engine", engine, engines.NAMES)
