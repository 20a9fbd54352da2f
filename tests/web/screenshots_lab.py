"""Takes the pictures of the lab's page for the docs, from simulated runs: `make screenshots`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect

from experiments.web.app import Content
from experiments.web.open_documents import open_documents
from experiments.web.server import PageServer
from tests.fakes.lab import LAB_COMMAND
from tests.paths import ROOT
from tests.web.browser import PATIENCE_MS, chromium, open_page

RUNS = ["run", "butterfly", "--engine", "sim", "--protocol", "mstcp,mptcp-sdn,ppfs,ospf", "--case", "2"]
RUNS += ["--seeds", "4", "--duration", "20"]
PLAYED_S = "7.50 s"


def main(target: Path) -> None:
    """Make the runs, and take a picture of the whole page and one of a phone's."""
    target.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE_MS)
    with tempfile.TemporaryDirectory(prefix="screenshots-") as name:
        command = [*LAB_COMMAND, *RUNS, "--out", name]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        with PageServer(Content(open_documents(Path(name)))) as server, chromium() as browser:
            with open_page(browser, server.address, height=1010) as page:
                prepare(page)
                page.screenshot(path=target / "browse.png")
                page.get_by_role("region", name="Network over time").screenshot(
                    path=target / "browse-network.png"
                )
            with open_page(browser, server.address, width=390, height=844, is_dark=True) as page:
                prepare(page)
                page.get_by_role("region", name="Goodput over time").scroll_into_view_if_needed()
                page.screenshot(path=target / "browse-narrow.png")


def prepare(page: Page) -> None:
    """Choose a flow and a moment, and wait until all is drawn."""
    page.get_by_role("combobox", name="Flow").select_option("2")
    expect(page.locator(".chart canvas")).to_have_count(4)
    slider = page.get_by_role("slider", name="Time in the measurement")
    slider.fill("29")
    expect(page.locator(".scrub-time")).to_have_text(PLAYED_S)
    page.evaluate("window.scrollTo(0, 0)")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
