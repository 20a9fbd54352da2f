"""Pages in a browser, with all that they complain about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.paths import ROOT

CHROMIUM = "chromium"
PATIENCE_MS = 60_000
"""A machine may be busy; what is waited for takes less than a second on an idle one."""

LOST = ("Failed to load resource", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION")
"""What a browser says on its console when a server has gone, which some tests want."""

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"


def missing() -> str | None:
    """Return why there is no browser; None if there is one."""
    return None if shutil.which(CHROMIUM) else f"{CHROMIUM} is not installed: run 'make setup'"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium."""
    # As root, it has no sandbox; the pages are our own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=shutil.which(CHROMIUM), args=arguments)
        yield launched
        launched.close()


@contextmanager
def open_page(
    browser: Browser,
    address: str,
    width: int = 1440,
    height: int = 900,
    is_dark: bool = False,
    allowed: tuple[str, ...] = (),
) -> Iterator[Page]:
    """Open an address; at the end, nothing but what is `allowed` may have been complained of.

    Complaints are what a page writes to its console as error or warning, such as violations of the content
    security policy, and exceptions.
    """
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if is_dark else "light",
        reduced_motion="reduce",
        locale="en-GB",
    )
    page = context.new_page()
    origin = address.partition("#")[0]
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    foreign: list[str] = []
    page.on(
        "console",
        lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda sent: None if sent.url.startswith((origin, "data:", "blob:")) else foreign.append(sent.url),
    )
    try:
        page.goto(address)
        yield page
    finally:
        context.close()
    assert not foreign, "no request leaves the machine"
    assert not [text for text in complaints if not any(part in text for part in allowed)]


def cut_cells(page: Page) -> list[str]:
    """Return the cells of tables that are not wholly seen."""
    cut: list[str] = page.evaluate(
        """[...document.querySelectorAll("[role=gridcell], [role=columnheader]")].filter((cell) => {
          const row = cell.parentElement.getBoundingClientRect();
          const { left, right, height } = cell.getBoundingClientRect();
          const isOutside = left < row.left || right > row.right || height > row.height;
          return isOutside || cell.scrollWidth > cell.clientWidth;
        }).map((cell) => cell.textContent)"""
    )
    return cut


def serious_faults(page: Page) -> list[Any]:
    """Return what axe calls serious or critical."""
    if not AXE.exists():
        pytest.skip("axe-core is missing: run 'make web'")
    # Evaluated by the browser's debugger, which the content security policy does not bind.
    page.evaluate(AXE.read_text())
    report = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        (violation["id"], [node["target"] for node in violation["nodes"]][:5], violation["help"])
        for violation in report["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
