"""The controller's page in a browser; the switches are fakes."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import topologies
from controller.configuration.access import Access, AccessRole, Token, digest_of
from controller.model.client_events import ClientEventKind
from controller.model.messages import Report
from tests.fakes.requests import FIRST as REQUEST
from tests.fakes.served_controller import Controller
from tests.web.browser import LOST, PATIENCE_MS, cut_cells, open_page, serious_faults
from tests.web.served import Served, serve

expect.set_options(timeout=PATIENCE_MS)

OTHER = {"source": "T1", "destination": "T3", "rate_bps": 4e6}
MARKUP = "<img src=x onerror=alert(1)><b>me</b>"


def rows(page: Page) -> list[str]:
    return page.locator(".table-row").all_inner_texts()


def test_without_flows_it_says_what_to_do(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        expect(page.get_by_text("No flows yet")).to_be_visible()
        expect(page.locator(".summary")).to_contain_text("all connected")
        expect(page.get_by_role("heading", name="butterfly")).to_be_visible()


def test_without_switches_it_does_not_say_that_all_is_well(browser: Browser) -> None:
    controller = Controller(confirm_timeout_s=5.0)
    with serve(controller, arrive=False) as served, open_page(browser, served.address, width=400) as page:
        status = page.locator(".page-head .badge")
        expect(status).to_have_text("no switches")
        expect(page.locator(".summary")).to_contain_text("0 of 6 connected")
        expect(page.get_by_text("No switch is connected")).to_be_visible()
        first, *others = controller.switches.arrivals()
        controller.loop.post(first)
        expect(status).to_have_text("degraded")
        for arrival in others:
            controller.loop.post(arrival)
        expect(status).to_have_text("live")
        expect(page.get_by_text("No flows yet")).to_be_visible()


def test_a_flow_lights_its_paths_and_a_link_lists_its_flows(served: Served, browser: Browser) -> None:
    flow = served.request()
    served.request(**OTHER)
    with open_page(browser, served.address) as page:
        page.get_by_role("row", name="T0 → T2").click()
        details = page.get_by_role("tabpanel")
        for stream in flow["streams"]:
            expect(details).to_contain_text(" → ".join(stream["path"]))
        page.get_by_label("Find a node or link").fill("S2-S3")
        expect(details.get_by_role("heading", name="S2-S3")).to_be_visible()
        expect(details).to_contain_text("2 flows over it")
        details.get_by_role("button", name="T1 → T3").click()
        expect(details.get_by_role("heading", name="T1 → T3")).to_be_visible()
        page.get_by_label("Search flows").fill("t1 5001")
        expect(page.locator(".table-row")).to_have_count(1)
        page.get_by_label("Search flows").fill("nobody")
        expect(page.get_by_text("No flow matches “nobody”")).to_be_visible()


def on_map(page: Page, element: str) -> tuple[float, float]:
    """Wait until the map draws a node or link; return where its middle is on the page."""
    place = page.wait_for_function(
        """(id) => {
          const canvas = document.querySelector(".map-canvas");
          const element = canvas?._cyreg?.cy?.getElementById(id);
          if (!element?.length) return null;
          const box = element.isNode() ? element.renderedPosition() : element.renderedMidpoint();
          const { left, top } = canvas.getBoundingClientRect();
          return [left + box.x, top + box.y];
        }""",
        arg=element,
    ).json_value()
    return place[0], place[1]


def test_the_map_is_clicked_and_dragged(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        expect(page.locator(".summary")).to_contain_text("all connected")
        page.mouse.click(*on_map(page, "S2-S3"))
        expect(page.get_by_role("tabpanel").get_by_role("heading", name="S2-S3")).to_be_visible()
        page.mouse.click(*on_map(page, "S4"))
        expect(page.get_by_role("tabpanel").get_by_role("heading", name="S4")).to_be_visible()
        x, y = on_map(page, "T0")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 40, y + 60, steps=5)
        page.mouse.up()
        kept = kept_places(page)
        moved = on_map(page, "T0")
        assert moved == pytest.approx((x + 40, y + 60), abs=3)
        page.reload()
        expect(page.locator(".summary")).to_contain_text("all connected")
        assert kept_places(page) == kept


def test_rows_sort_and_move_by_keyboard(served: Served, browser: Browser) -> None:
    for number, rate_bps in enumerate((3e6, 1e6, 2e6)):
        served.request(destination_port=6000 + number, rate_bps=rate_bps)
    with open_page(browser, served.address) as page:
        expect(page.locator(".table-row")).to_have_count(3)
        page.get_by_role("columnheader", name="Requested").get_by_role("button").click()
        assert [re.search(r":600(\d)", row)[1] for row in rows(page)] == ["1", "2", "0"]  # type: ignore[index]
        page.get_by_role("columnheader", name="Requested").get_by_role("button").click()
        assert [re.search(r":600(\d)", row)[1] for row in rows(page)] == ["0", "2", "1"]  # type: ignore[index]
        page.get_by_role("grid", name="Flows").focus()
        page.keyboard.press("End")
        expect(page.locator(".table-row[aria-selected=true]")).to_contain_text(":6001")
        page.keyboard.press("ArrowUp")
        expect(page.locator(".table-row[aria-selected=true]")).to_contain_text(":6002")
        page.keyboard.press("Escape")
        expect(page.locator(".table-row[aria-selected=true]")).to_have_count(0)


def test_refusals_are_the_sentences_of_the_api(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address, allowed=("status of 404", "status of 422")) as page:
        page.get_by_role("button", name="Request a flow").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("From").fill("T9")
        dialog.get_by_label("To").fill("T2")
        dialog.get_by_label("Rate").fill("fast")
        dialog.get_by_role("button", name="Request", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("“fast” is no rate")
        dialog.get_by_label("Rate").fill("8.5M")
        dialog.get_by_role("button", name="Request", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("there is no host 'T9'; known are T0, T1, T2, T3")
        expect(dialog.get_by_label("From")).to_have_attribute("aria-invalid", "true")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        page.get_by_role("tab", name="Events").click()
        expect(page.locator(".event[data-kind=flow_refused]")).to_contain_text("no host 'T9'")


def test_a_token_is_asked_for_and_kept_for_the_tab(browser: Browser) -> None:
    tokens = [
        Token(MARKUP, AccessRole.REQUEST, digest_of("right")),
        Token("reader", AccessRole.READ, digest_of("read")),
    ]
    allowed = ("status of 401", "status of 403")
    with serve(Controller(confirm_timeout_s=5.0), Access(tokens)) as served:
        served.post("/v1/flows", REQUEST, Authorization="Bearer right")
        with open_page(browser, served.address, allowed=allowed) as page:
            token = page.get_by_label("Token")
            token.fill("wrong")
            page.get_by_role("button", name="Use it").click()
            expect(page.get_by_role("alert")).to_contain_text("not known to the controller")
            assert serious_faults(page) == []
            token.fill("read")
            page.get_by_role("button", name="Use it").click()
            # The owner is the token's name: shown as the text that it is.
            expect(page.get_by_role("row", name="T0 → T2")).to_contain_text(MARKUP)
            page.get_by_role("row", name="T0 → T2").click()
            expect(page.get_by_role("tabpanel")).to_contain_text(MARKUP)
            page.get_by_role("tab", name="Events").click()
            expect(page.locator(".event[data-kind=flow_granted]")).to_contain_text(MARKUP)
            assert page.locator("img").count() == 1, "the page's own"
            page.reload()
            page.get_by_role("row", name="T0 → T2").click()
            page.get_by_role("button", name="Release…").click()
            page.get_by_role("dialog").get_by_role("button", name="Release", exact=True).click()
            expect(page.get_by_role("alert")).to_contain_text("the token of reader has the role read")


def test_what_if_shows_what_the_api_answers(served: Served, browser: Browser) -> None:
    served.request()
    served.request(**OTHER)
    asked = {
        "fail": {"links": ["S2-S3"], "switches": ["S5"]},
        "scale": [{"factor": 2}],
        "add": [{"source": "T1", "destination": "T2", "destination_port": 5001, "rate_bps": 1e6}],
    }
    answer = served.post("/v1/preview", asked)
    with open_page(browser, served.address) as page:
        page.get_by_role("tab", name="What if").click()
        panel = page.get_by_role("tabpanel")
        for name in ("S3-S2", "S5"):
            panel.get_by_label("Fail", exact=True).fill(name)
            panel.get_by_role("button", name="Add").nth(0).click()
        panel.get_by_role("button", name="Add").nth(1).click()
        for label, text in (("From", "T1"), ("To", "T2"), ("Rate", "1M")):
            panel.get_by_label(label, exact=True).fill(text)
        panel.get_by_role("button", name="Add").nth(2).click()
        expect(panel.get_by_role("list", name="Supposed").get_by_role("listitem")).to_have_count(4)
        panel.get_by_role("button", name="Show what would happen").click()
        tiles = panel.locator(".tile")
        expect(tiles).to_have_count(4)
        summary = answer["summary"]
        shown = [
            f"{summary['admitted']} of 1",
            *(str(summary[name]) for name in ("moved", "lost", "rate_changed")),
        ]
        assert tiles.locator("b").all_inner_texts() == shown
        assert summary["lost"] == 1, "T3 hangs on S5"
        assert panel.locator(".flow-list .badge").count() == len(answer["flows"])
        expect(page.locator(".summary")).to_contain_text("Links downnone")
        page.get_by_role("button", name="Back to the network").click()
        expect(panel.locator(".tile")).to_have_count(0)
    assert len(served.get("/v1/flows")) == 2, "nothing was installed"


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("is_dark", [False, True])
def test_axe_finds_nothing_serious(served: Served, browser: Browser, width: int, is_dark: bool) -> None:
    served.request()
    served.request(**OTHER)
    served.set_link("S2-S3", up=False)
    with open_page(browser, served.address, width=width, is_dark=is_dark) as page:
        page.get_by_role("row", name="T0 → T2").click()
        for tab in ("Details", "Events", "What if", "Health"):
            page.get_by_role("tab", name=tab).click()
            expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
            assert serious_faults(page) == [], tab
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off"
        if width == 400:
            page.get_by_role("tab", name="Flows").click()
        assert cut_cells(page) == []
        page.get_by_role("button", name=re.compile(r"^Request( a flow)?$")).click()
        assert serious_faults(page) == [], "dialog"


def kept_places(page: Page) -> str:
    """Wait until places are kept; the content security policy forbids Playwright's own waiting."""
    for _ in range(600):
        kept = page.evaluate("localStorage.getItem('mstcp.map.butterfly')")
        if kept is not None:
            return str(kept)
        page.wait_for_timeout(100)
    raise TimeoutError("no places are kept")


def test_without_the_controller_it_says_what_is_so_and_what_to_do(browser: Browser) -> None:
    controller = Controller(confirm_timeout_s=5.0, lease_s=600.0)
    with serve(controller) as served, open_page(browser, served.address, allowed=LOST) as page:
        served.request()
        flow = page.get_by_role("row", name="T0 → T2")
        expect(flow).to_be_visible()
        before = flow.bounding_box()
        served.stop()
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("Disconnected since")
        expect(alert).to_contain_text("Look whether mstcp-controller runs at 127.0.0.1")
        assert flow.bounding_box() == before, "nothing moves"
        assert serious_faults(page) == []


def test_places_on_the_map_and_the_theme_are_kept(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        canvas = page.get_by_role("application")
        expect(page.locator(".summary")).to_contain_text("all connected")
        box = canvas.bounding_box()
        assert box is not None
        page.wait_for_timeout(200)
        canvas.focus()
        page.keyboard.press("+")
        page.keyboard.press("ArrowLeft")
        page.get_by_role("button", name="Dark colours").click()
        kept = kept_places(page)
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        expect(page.locator(".summary")).to_contain_text("all connected")
        assert kept_places(page) == kept


def test_a_large_network(browser: Browser, tmp_path: Path) -> None:
    """All of it is there, and the table draws what is seen."""
    network = topologies.load("waxman:188:beta=0.02:rate_bps=1e9:host_rate_bps=1e9")
    topology = tmp_path / "network.json"
    topology.write_text(network.model_dump_json())
    with serve(Controller(str(topology), confirm_timeout_s=30.0, lease_s=600.0)) as served:
        for number in range(80):
            source, destination = network.hosts[number % 5], network.hosts[5]
            fields = {"source": source, "destination": destination, "rate_bps": 1e6}
            served.request(destination_port=5000 + number, **fields)
        with open_page(browser, served.address) as page:
            expect(page.locator(".flow-count")).to_have_text("80")
            expect(page.locator(".page-name")).to_contain_text("188 switches, 188 hosts")
            assert page.locator(".table-row").count() < 60
            page.get_by_role("grid", name="Flows").focus()
            page.keyboard.press("End")
            expect(page.locator(".table-row[aria-selected=true]")).to_contain_text(":5079")
            path = page.locator(".path-nodes").inner_text().split(" → ")
            assert (path[0], path[-1]) == (network.hosts[79 % 5], network.hosts[5])
            link = "-".join(path[1:3])
            page.get_by_label("Find a node or link").fill(link)
            page.get_by_label("Find a node or link").fill("-".join(path[2:0:-1]))
            expect(page.get_by_role("tabpanel")).to_contain_text("flows over it")


def test_of_many_events_the_last_ones_are_left(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        expect(page.locator(".timeline .badge")).to_contain_text("live")
        count, batch = 12_000, 2_400
        for first in range(0, count, batch):
            for number in range(first, first + batch):
                report = Report("info", f"link N{number} is up", {"link": "S2-S3"}, ClientEventKind.LINK_UP)
                served.controller.loop.carry_out([report])
            expect(page.locator(".event").first).to_contain_text(
                f"link N{first + batch - 1} is up", ignore_case=True
            )
        assert page.locator(".event[data-kind=history_lost]").count() == 0
        assert page.locator(".event").count() <= 100
        while (
            page.get_by_role("button", name="Show older events").count()
            and page.locator(".event").count() < 300
        ):
            page.get_by_role("button", name="Show older events").click()
        heap = page.context.new_cdp_session(page)
        heap.send("HeapProfiler.collectGarbage")
        assert heap.send("Runtime.getHeapUsage")["usedSize"] <= 200e6
