"""The compiled engine and the simulator are modules of their own, described by their stubs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mstcp import _core
from tests.paths import ROOT


@pytest.mark.parametrize("module", ["gomr._native", "netsim_native"])
def test_the_stub_describes_the_compiled_module(module: str) -> None:
    argv = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml", module]
    result = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_end_host_library_holds_neither_solver_nor_simulator() -> None:
    assert not hasattr(_core, "gomr")
    compiled = Path(str(_core.__file__)).read_bytes()
    assert b"max_throughput_min_delay" not in compiled and b"netsim" not in compiled
