"""The page over a real controller and real Open vSwitch: the life of a flow, seen in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from gomr import Demand, Edge, Problem
from gomr.solving import allocate
from playwright.sync_api import Page, expect

import topologies
from controller.state.live_network import arc_name
from controller.wire import Framing
from tests.controller.openflow.ovs_lab import Lab, laboratory, run, start_controller
from tests.fakes.waiting import wait_until
from tests.sandbox import run_in_sandbox
from tests.web.browser import LOST, PATIENCE_MS, chromium, missing, open_page

RATE_BPS = 8.5e6


@pytest.mark.root
@pytest.mark.timeout(600)
def test_a_flow_is_requested_moved_kept_and_released(tmp_path: Path) -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    seen = run_in_sandbox(drive, str(tmp_path), timeout=560.0)
    assert seen["granted_bps"] == pytest.approx(RATE_BPS)
    assert seen["supposed"] == seen["moved"], "what if says what then happens"
    assert seen["supposed_bps"] == pytest.approx(seen["optimum_bps"], rel=1e-3)
    assert seen["recovery"]
    assert seen["gaps"] == 0
    assert (seen["before_restart"], seen["after_restart"]) == (1, 1), "neither missed nor told twice"
    assert seen["left"] == []


def drive(folder: str) -> dict[str, Any]:
    expect.set_options(timeout=PATIENCE_MS)
    network = topologies.load("butterfly")
    store = str(Path(folder, "state.sqlite"))
    with laboratory(network, Path(folder), "--store", store) as lab, chromium() as browser:
        wait_until(lab.rest.ready, "all switches and links")
        address = "http://127.0.0.1:8080"
        with open_page(browser, address, allowed=LOST) as page:
            seen = request(page, lab)
            seen |= suppose(page)
            seen |= fail_and_restore(page)
            seen |= restart(page, lab, Path(folder), store)
            return seen | release(page, lab)


def request(page: Page, lab: Lab) -> dict[str, Any]:
    page.get_by_role("button", name="Request a flow").click()
    dialog = page.get_by_role("dialog")
    for label, text in (("From", "T0"), ("To", "T2"), ("Rate", "8.5M")):
        dialog.get_by_label(label, exact=True).fill(text)
    dialog.get_by_role("button", name="Request", exact=True).click()
    expect(page.get_by_role("row", name="T0 → T2")).to_contain_text("8.50 Mbit/s")
    expect(page.locator(".path-nodes")).to_have_count(2)
    (flow,) = lab.rest.call("GET", "/flows")
    assert [" → ".join(stream["path"]) for stream in flow["streams"]] == paths(page)
    # Switches count what passes; nothing has been sent.
    expect(page.locator(".facts")).to_contain_text("Measured0 bit/s")
    colours = page.get_by_role("group", name="Colour links by")
    colours.get_by_role("button", name="Measured").click()
    expect(page.locator(".legend-title")).to_have_text("Measured utilisation")
    colours.get_by_role("button", name="Allocated").click()
    return {"granted_bps": flow["rate_bps"]}


def paths(page: Page) -> list[str]:
    return page.locator(".path-nodes").all_inner_texts()


def suppose(page: Page) -> dict[str, Any]:
    """Ask what if S2-S3 failed; the solver is asked beside."""
    with page.expect_response("**/v1/preview") as answered:
        page.get_by_role("tab", name="What if").click()
        page.get_by_label("Fail", exact=True).fill("S2-S3")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Show what would happen").click()
    answer = answered.value.json()
    expect(page.locator(".tile", has_text="moved").locator("b")).to_have_text("1")
    (moved,) = answer["flows"]
    page.get_by_role("button", name="Clear").click()
    return {
        "supposed": [" → ".join(path["path"]) for path in moved["paths_after"]],
        "supposed_bps": answer["summary"]["rate_after_bps"],
        "optimum_bps": optimum_without("S2-S3"),
    }


def optimum_without(link: str) -> float:
    """Return the goodput (bit/s) that the solver gives the flow over two paths without a link."""
    framing = Framing(1514, 54)
    network = topologies.load("butterfly")
    edges = tuple(
        Edge(
            arc_name(arc.tail, arc.head),
            arc.tail,
            arc.head,
            0.0 if arc.link == link else arc.rate_bps,
            arc.delay_s,
        )
        for arc in network.arcs()
    )
    reverse = {edge.id: arc_name(edge.head, edge.tail) for edge in edges}
    demand = Demand("flow", "T0", "T2", framing.wire_bps(RATE_BPS, 2), max_paths=2)
    solved = allocate(
        Problem(edges, (demand,), reverse, frozenset(network.hosts)), "max_throughput_min_delay"
    )
    wire_bps = sum(path.rate_bps for path in solved.paths["flow"])
    return framing.goodput_bps(wire_bps, 2)


def fail_and_restore(page: Page) -> dict[str, Any]:
    page.get_by_role("row", name="T0 → T2").click()
    expect(page.locator(".path-nodes")).to_have_count(2)
    before = paths(page)
    run("ip", "link", "set", "S2-S3", "down")
    expect(page.locator(".summary")).to_contain_text("S2-S3")
    expect(page.locator(".path-nodes").nth(1)).not_to_have_text(before[1])
    moved = paths(page)
    page.get_by_role("tab", name="Events").click()
    replanned = page.locator(".event[data-kind=flow_replanned], .event[data-kind=flow_restored]").first
    expect(replanned).to_contain_text("recovered in")
    recovery = replanned.locator(".recovery").inner_text()
    run("ip", "link", "set", "S2-S3", "up")
    expect(page.locator(".event[data-kind=link_up]").first).to_contain_text("S2-S3")
    expect(page.locator(".summary")).not_to_contain_text("S2-S3")
    return {"moved": moved, "recovery": re.fullmatch(r"recovered in [0-9.]+ (µs|ms|s)", recovery) is not None}


def restart(page: Page, lab: Lab, folder: Path, store: str) -> dict[str, Any]:
    """Stop the controller; events go on without a gap, since its store has them."""
    lab.controller.terminate()
    lab.controller.wait(timeout=60)
    before = page.get_by_role("region", name="Flows").bounding_box()
    expect(page.get_by_text("Disconnected since")).to_be_visible()
    assert page.get_by_role("region", name="Flows").bounding_box() == before, "nothing jumps"
    lab.controller, _ = start_controller(folder, "--store", store)
    wait_until(lab.rest.ready, "all switches and links again")
    expect(page.get_by_text("Disconnected since")).to_have_count(0)
    expect(page.locator(".timeline .badge")).to_have_text("live")
    expect(page.get_by_role("row", name="T0 → T2")).to_be_visible()
    before_it = page.locator(".event[data-kind=link_down]", has_text="S2-S3")
    gaps = page.locator(".event[data-kind=history_lost]")
    run("ip", "link", "set", "S1-S5", "down")
    down = page.locator(".event[data-kind=link_down]", has_text="S1-S5")
    expect(down).to_have_count(1)
    run("ip", "link", "set", "S1-S5", "up")
    expect(page.locator(".summary")).to_contain_text(re.compile(r"Links down\s*none"))
    return {"gaps": gaps.count(), "before_restart": before_it.count(), "after_restart": down.count()}


def release(page: Page, lab: Lab) -> dict[str, Any]:
    page.get_by_role("row", name="T0 → T2").click()
    page.get_by_role("button", name="Release…").click()
    page.get_by_role("dialog").get_by_role("button", name="Release", exact=True).click()
    expect(page.get_by_text("No flows yet")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    return {"left": lab.rest.call("GET", "/flows")}
