"""The controller's page on a network of Kdl's size, in the system's Chromium.

.venv/bin/python -m benchmarks.web                       # some minutes
.venv/bin/python -m benchmarks.web --topology Kdl.graphml --json

The controller is `mstcp-controller` itself, its switches are models that speak OpenFlow. Measured are:

- from the request for the page to the first drawn map (`first_picture_ms`), and the processor time that the
  browser took for it (`first_picture_cpu_ms`), which other programs do not change as much;
- the controller's processor time while nobody looks, and with five pages open (`controller_cores_*`);
- how long the browser takes to show what clicks and keys do, the longest of some (`interaction_ms`), and its
  processor time within half a second of each, with that of the update which falls into it;
- what a day of events, one a second, leaves in the page's memory (`day_of_events_heap_mb`).
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import Browser, CDPSession, Page, async_playwright

from benchmarks.command_line import command_line, show
from benchmarks.controller.process import Controller, controller
from benchmarks.web.events import day_of_events_heap_mb
from benchmarks.web.networks import network_of
from tests.fakes.model_network import fleet_of
from topologies.model import Network

_PAGES = 5
_IDLE_S = 20.0
_PATIENCE_S = 120.0
_OPTIONS = ("--probe-interval", "30", "--silence", "600", "--lease", "7200")
"""The model switches share a machine with the browser: they may be slow to answer."""

_SETTLED_MS = 500

_OBSERVE = """() => {
  window.interactions = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.interactionId) window.interactions.push(entry.duration);
  }).observe({ type: "event", durationThreshold: 16, buffered: true });
}"""

Result = dict[str, float | int | None]


def main() -> int:
    """Parse the command line, measure, and print."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--topology", help="a file; left out: a made-up network of Kdl's size")
    parser.add_argument("--hosts", type=int, default=40)
    parser.add_argument("--flows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip-events", action="store_true", help="leave out the day of events")
    options = parser.parse_args()
    program = shutil.which("chromium")
    if program is None:
        print("benchmarks.web: chromium is not installed: run 'make setup'", file=sys.stderr)
        return 2
    network = network_of(options.topology, options.hosts, options.seed)
    result = asyncio.run(_measure(program, network, options.flows, options.seed))
    if not options.skip_events:
        result["day_of_events_heap_mb"] = day_of_events_heap_mb(program)
    show(result, options.json)
    return 0


async def _measure(program: str, network: Network, flows: int, seed: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="web-") as name:
        topology = Path(name, "network.json")
        topology.write_text(network.model_dump_json())
        log = Path(name, "controller.log")
        async with (
            controller(str(topology), log, *_OPTIONS) as running,
            fleet_of(network, running.openflow),
            async_playwright() as playwright,
        ):
            await running.ready()
            await _request(running, network, flows, seed)
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = await playwright.chromium.launch(executable_path=program, args=arguments)
            result = await _look(running, browser, network, flows)
            await browser.close()
            return result


async def _request(running: Controller, network: Network, flows: int, seed: int) -> None:
    chooser = random.Random(seed)
    async with httpx.AsyncClient(base_url=f"http://{running.rest}", timeout=_PATIENCE_S) as client:
        for number in range(flows):
            source, destination = chooser.sample(sorted(network.hosts), 2)
            wish = {
                "source": source,
                "destination": destination,
                "destination_port": 5000 + number,
                "rate_bps": chooser.choice((1e6, 2e6, 5e6)),
            }
            while (answer := await client.post("/v1/flows", json=wish)).status_code == 503:
                await asyncio.sleep(1)  # a model switch was slow to confirm
            answer.raise_for_status()


async def _look(running: Controller, browser: Browser, network: Network, flows: int) -> Result:
    address = f"http://{running.rest}/"
    idle = await _cores(running)
    first: list[tuple[float, float]] = []
    pages: list[Page] = []
    for _ in range(_PAGES):
        page = await (await browser.new_context(viewport={"width": 1440, "height": 900})).new_page()
        first.append(await _first_picture(page, address))
        pages.append(page)
    watched = await _cores(running)
    return {
        "switches": len(network.switches),
        "links": len(network.links),
        "flows": flows,
        "first_picture_ms": statistics.median(picture_ms for picture_ms, _ in first),
        "first_picture_cpu_ms": statistics.median(cpu_ms for _, cpu_ms in first),
        "controller_cores_idle": idle,
        "controller_cores_five_pages": watched,
        **await _interact(pages[0]),
    }


async def _cores(running: Controller) -> float:
    """Return the share of a core that the controller uses."""
    before_s = running.cpu_s()
    await asyncio.sleep(_IDLE_S)
    return round((running.cpu_s() - before_s) / _IDLE_S, 4)


async def _first_picture(page: Page, address: str) -> tuple[float, float]:
    """Return when the map was drawn and the processor time that it took, in milliseconds."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    await page.goto(address)
    marks: list[Any] = []
    while not marks:
        await asyncio.sleep(0.05)
        marks = await page.evaluate("performance.getEntriesByName('map drawn').map((mark) => mark.startTime)")
    return round(marks[0], 1), round(await _cpu_ms(session), 1)


async def _interact(page: Page) -> Result:
    """Select, sort, search and move; returns the longest times that this took, in milliseconds."""
    await page.evaluate(_OBSERVE)
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    cpu_ms: list[float] = []
    for act in _actions(page):
        before_ms = await _cpu_ms(session)
        await act()
        await page.wait_for_timeout(_SETTLED_MS)
        cpu_ms.append(await _cpu_ms(session) - before_ms)
    durations: list[float] = await page.evaluate("window.interactions")
    return {"interaction_ms": max(durations, default=0.0), "interaction_cpu_ms": round(max(cpu_ms), 1)}


def _actions(page: Page) -> list[Callable[[], Awaitable[None]]]:
    """Return what a person does."""
    rows = page.locator(".table-row")
    head = page.get_by_role("columnheader", name="Requested").get_by_role("button")
    search = page.get_by_label("Search flows")
    tabs = [page.get_by_role("tab", name=name) for name in ("Events", "What if", "Health", "Details")]
    return [
        *(rows.nth(number).click for number in (1, 3, 5)),
        head.click,
        lambda: search.press("a"),
        lambda: search.press("n"),
        page.get_by_role("application").focus,
        *(partial(page.keyboard.press, key) for key in ("+", "+", "ArrowLeft", "ArrowUp", "0")),
        *(tab.click for tab in tabs),
    ]


async def _cpu_ms(session: CDPSession) -> float:
    """Return the processor time that the browser's process for the page has taken."""
    answer = await session.send("Performance.getMetrics")
    figures = {metric["name"]: metric["value"] for metric in answer["metrics"]}
    return 1e3 * float(figures["ProcessTime"])


if __name__ == "__main__":
    sys.exit(main())
