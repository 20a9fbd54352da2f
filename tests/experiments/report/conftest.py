"""Shared by the tests of the report."""

from __future__ import annotations

import pytest

from experiments.report import page


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave pages without plots, which take nearly all of their time."""
    monkeypatch.setattr(page, "_draw", lambda section, network: None)
