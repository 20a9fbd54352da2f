"""What a day of events leaves in the page's memory."""

from __future__ import annotations

import os
import time

from playwright.sync_api import Page, sync_playwright

from controller.model.client_events import ClientEventKind
from controller.model.messages import Report
from tests.fakes.served_controller import Controller
from tests.web.served import serve

_DAY = 86_400
_BATCH = 2_400
"""Fewer than the controller keeps: a browser that is slow misses none."""

_PATIENCE_S = 120.0


def day_of_events_heap_mb(program: str) -> float:
    """Send a page one event for each second of a day, as fast as it takes them; returns its heap in MB."""
    with serve(Controller()) as served, sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        page = browser.new_page()
        page.goto(served.address)
        page.get_by_role("tab", name="Events").click()
        for first in range(0, _DAY, _BATCH):
            for number in range(first, first + _BATCH):
                facts = {"link": "S2-S3", "down_s": 1.0}
                report = Report("info", f"link N{number} is up", facts, ClientEventKind.LINK_UP)
                served.controller.loop.carry_out([report])
            _wait_for(page, f"link N{first + _BATCH - 1} is up")
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        used_mb = float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6
        browser.close()
    return round(used_mb, 1)


def _wait_for(page: Page, text: str) -> None:
    limit_s = time.monotonic() + _PATIENCE_S
    while text not in page.locator(".event").first.inner_text():
        if time.monotonic() > limit_s:
            raise TimeoutError(f"the page does not show {text!r}")
        page.wait_for_timeout(50)
