"""Takes the pictures of the page for README and docs, on real Open vSwitch: `make screenshots`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect

import topologies
from tests.controller.openflow.ovs_lab import Lab, in_host, laboratory, run
from tests.fakes.waiting import wait_until
from tests.paths import ROOT
from tests.web.browser import PATIENCE_MS, chromium, open_page

NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
ADDRESS = "http://127.0.0.1:8080"
FLOWS = (("T0", "T2", 8.5e6), ("T1", "T3", 4e6), ("T2", "T1", 2e6))
SETTLED_S = 25.0
"""So long rates are drawn before the first picture."""

SINK = """
import selectors, socket
listener = socket.create_server(("0.0.0.0", 5001))
waiting = selectors.DefaultSelector()
waiting.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in waiting.select():
        if key.fileobj is listener:
            waiting.register(listener.accept()[0], selectors.EVENT_READ)
        else:
            key.fileobj.recv(65536)
"""

SOURCE = """
import json, socket, sys, time
address, streams = sys.argv[1], json.loads(sys.argv[2])
connections = []
for port, rate_bps in streams:
    connection = socket.create_connection((address, 5001), timeout=20, source_address=("0.0.0.0", port))
    connections.append((connection, rate_bps / 8))
started = time.monotonic()
sent = [0.0] * len(connections)
while True:
    time.sleep(0.02)
    for number, (connection, rate) in enumerate(connections):
        due = (time.monotonic() - started) * rate - sent[number]
        connection.sendall(bytes(int(due)))
        sent[number] += int(due)
"""


def main() -> int:
    """Take the pictures; the argument is the folder for them."""
    if len(sys.argv) == 2:
        if os.geteuid() != 0:
            raise SystemExit("screenshots: Open vSwitch and namespaces need root: use sudo")
        command = [*NAMESPACES, sys.executable, "-m", "tests.web.screenshots", sys.argv[1], "inside"]
        return subprocess.run(command, cwd=ROOT, check=False).returncode
    target = Path(sys.argv[1]).absolute()
    target.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE_MS)
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as name,
        laboratory(topologies.load("butterfly"), Path(name)) as lab,
        chromium() as browser,
    ):
        wait_until(lab.rest.ready, "all switches and links")
        for source, destination, rate_bps in FLOWS:
            send(lab, source, destination, rate_bps)
        with open_page(browser, ADDRESS) as page:
            expect(page.locator(".table-row")).to_have_count(len(FLOWS))
            time.sleep(SETTLED_S)
            with open_page(browser, ADDRESS, is_dark=True) as other:
                what_if(other, target)
            pictures(page, target)
        with open_page(browser, ADDRESS, width=390, height=844) as page:
            page.get_by_role("row", name="T0 → T2").click()
            time.sleep(2)
            page.screenshot(path=target / "dashboard-narrow.png")
    return 0


def send(lab: Lab, source: str, destination: str, rate_bps: float) -> None:
    """Request a flow and send at its rates; it ends with the namespaces."""
    wish = {
        "source": source,
        "destination": destination,
        "destination_port": 5001,
        "rate_bps": rate_bps,
        "lease_s": 3600,
    }
    flow = lab.rest.call("POST", "/flows", wish)
    subprocess.Popen(in_host(destination, sys.executable, "-c", SINK))
    time.sleep(1)
    streams = json.dumps([(stream["source_port"], 0.97 * stream["rate_bps"]) for stream in flow["streams"]])
    address = lab.network.host_ip(destination)
    subprocess.Popen(in_host(source, sys.executable, "-c", SOURCE, address, streams))


def pictures(page: Page, target: Path) -> None:
    page.get_by_role("row", name="T0 → T2").click()
    time.sleep(1)
    page.screenshot(path=target / "dashboard.png")
    page.get_by_role("button", name="Close the details").click()
    run("ip", "link", "set", "S2-S3", "down")
    page.get_by_role("tab", name="Events").click()
    expect(page.locator(".event[data-kind=flow_replanned]").first).to_contain_text("recovered in")
    time.sleep(4)
    page.screenshot(path=target / "dashboard-events.png")
    run("ip", "link", "set", "S2-S3", "up")
    expect(page.locator(".summary")).not_to_contain_text("S2-S3")


def what_if(page: Page, target: Path) -> None:
    page.get_by_role("tab", name="What if").click()
    page.get_by_label("Fail", exact=True).fill("S2-S3")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show what would happen").click()
    page.locator(".answer .flow-list button").first.click()
    time.sleep(2)
    page.screenshot(path=target / "dashboard-what-if.png")


if __name__ == "__main__":
    sys.exit(main())
