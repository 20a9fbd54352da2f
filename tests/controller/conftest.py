"""What many tests of the core begin with."""

from __future__ import annotations

import pytest

import topologies
from tests.fakes.openflow_table import ControlledNetwork


@pytest.fixture
def net() -> ControlledNetwork:
    """Return the butterfly, with all switches connected and all links discovered."""
    return ControlledNetwork.brought_up(topologies.load("butterfly"))
