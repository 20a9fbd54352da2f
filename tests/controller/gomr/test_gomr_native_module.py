"""The compiled engine is a module of its own, described by its stub."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mstcp import _core

ROOT = Path(__file__).parents[3]


def test_the_stub_describes_the_compiled_engine(tmp_path: Path) -> None:
    # The package holds one compiled module of the same name and hands on all that is in it.
    (tmp_path / "allowed").write_text("gomr_native.gomr_native\n")
    options = ["--mypy-config-file", "pyproject.toml", "--allowlist", str(tmp_path / "allowed")]
    argv = [sys.executable, "-m", "mypy.stubtest", *options, "gomr_native"]
    result = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_the_end_host_library_holds_no_solver() -> None:
    assert not hasattr(_core, "gomr")
    compiled = Path(str(_core.__file__)).read_bytes()
    assert b"max_throughput_min_delay" not in compiled
