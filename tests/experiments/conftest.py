"""Shared by the tests of the experiments."""

from __future__ import annotations

import os
import shutil

import pytest

from experiments.engines.live.requirements import PROGRAMS
from tests.fakes.lab import Lab


@pytest.fixture
def live_machine() -> None:
    """Skip where no live run can be made."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for program in ("unshare", *PROGRAMS):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


@pytest.fixture
def lab(capsys: pytest.CaptureFixture[str]) -> Lab:
    return Lab(capsys)
