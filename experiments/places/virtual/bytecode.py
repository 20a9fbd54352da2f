"""Compiles all Python files that a virtual machine may import.

A machine cannot write it, and would compile the same files in each run; so the host does before.
"""

from __future__ import annotations

import compileall
import hashlib
import sysconfig
from contextlib import suppress
from pathlib import Path

from experiments.installation import ROOT
from experiments.places.virtual.kernel_image import cache_folder

PACKAGES = ("mstcp", "controller", "switch", "topologies", "experiments")


def compile_all() -> None:
    """Compile what is not compiled, or not from its source as it is now; what cannot be written is left."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=2)
    packages = Path(sysconfig.get_path("purelib"))
    # Some ten thousand files: looked at again only where something was installed since.
    state = f"{packages} {packages.stat().st_mtime_ns}"
    stamp = cache_folder() / f"compiled-{hashlib.sha256(state.encode()).hexdigest()[:16]}"
    if not stamp.exists():
        compileall.compile_dir(packages, quiet=2, workers=0)
        with suppress(OSError):
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
