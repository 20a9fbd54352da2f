"""A browser and a controller for the pages' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.fakes.served_controller import Controller
from tests.web.browser import chromium, missing
from tests.web.served import Served, serve


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each module: while it runs, its event loop keeps tests of other modules from having theirs."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with chromium() as launched:
        yield launched


@pytest.fixture
def served() -> Iterator[Served]:
    """The butterfly's controller, whose switches are fakes, with REST on a loopback address."""
    with serve(Controller(confirm_timeout_s=5.0, lease_s=600.0)) as serving:
        yield serving
