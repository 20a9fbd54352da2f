"""The lab's page in a browser: finished results, and runs while they are made."""

from __future__ import annotations

import argparse
import csv
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from experiments import runner
from experiments.cli.command_line import make_parser
from experiments.cli.run import job_from
from experiments.cli.watch import watching
from experiments.model.atomic_files import write_output
from experiments.model.events import (
    ConnectedFlow,
    ConnectedStream,
    Event,
    FlowsConnected,
    PhaseBegun,
    RatesMeasured,
    RunFinished,
    RunStarted,
    TimeMeasured,
    ValidityMeasured,
)
from experiments.model.job import Job
from experiments.model.results import FlowResult, Results
from experiments.web.app import Content
from experiments.web.documents import FinishedResults, GrowingResults
from experiments.web.event_log import EventLog
from experiments.web.server import PageServer
from experiments.web.watching import Watch
from tests.fakes.results import make_results, make_run
from tests.web.browser import PATIENCE_MS, cut_cells, open_page, serious_faults

expect.set_options(timeout=PATIENCE_MS)

MARKUP = "<img src=x onerror=alert(1)>"
WIDTHS = pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (500, False), (400, True)])


@pytest.fixture(scope="module")
def results() -> Results:
    return make_results(("ospf", "mstcp", "ppfs"), seeds=3, duration_s=3.0)


@pytest.fixture(scope="module")
def address(results: Results) -> Iterator[str]:
    with PageServer(Content([FinishedResults(results, "results/butterfly")])) as server:
        yield server.address


def saved_csv(page: Page, figure: str) -> list[dict[str, str]]:
    """Save a figure, and return the rows of the file."""
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save “{figure}” as CSV").click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


def flow_of(results: Results, protocol: str, seed: int, flow: str, case: str = "1") -> FlowResult:
    key = (case, protocol, seed)
    (run,) = (run for run in results.runs if (run.case, run.protocol, run.seed) == key)
    return next(each for each in run.flows if each.flow == flow)


def test_what_is_exported_is_what_the_document_says(address: str, results: Results, browser: Browser) -> None:
    with open_page(browser, address) as page:
        page.get_by_role("combobox", name="Flow").select_option("1")
        page.get_by_role("checkbox", name="a line for each seed").check()
        title = "Goodput over time, flow 1 (T0 to T2), case 1"
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        expect(page.get_by_role("region", name=title).locator(".u-legend")).to_contain_text("mstcp, seed 2")
        rows = [row for row in saved_csv(page, title) if row["line"] == "mstcp, seed 2"]
        series = flow_of(results, "mstcp", 2, "1").series
        assert [float(row["time_s"]) for row in rows] == series.time_s
        assert [float(row["goodput_bps"]) for row in rows] == series.goodput_bps

        dots = saved_csv(page, "Goodput, case 1")
        for row in dots:
            flow = flow_of(results, row["protocol"], int(row["seed"]), "1")
            assert float(row["goodput_bps"]) == flow.goodput_bps
        assert len(dots) == 9

        links = saved_csv(page, "Network over time")
        shown = next(run for run in results.runs if run.protocol == "mstcp" and run.seed == 1)
        assert {row["link"]: float(row["utilisation"]) for row in links} == {
            link.link: link.utilisation for link in shown.links
        }


def test_pictures_are_saved_as_they_are_named(address: str, browser: Browser) -> None:
    with open_page(browser, address, is_dark=True) as page:
        for figure in (
            "Goodput, case 1",
            "Distribution of the delay, all flows, case 1",
            "Network over time",
        ):
            expect(page.get_by_role("region", name=figure)).to_be_visible()
            for kind, begins in (("SVG", b"<svg xmlns="), ("PNG", b"\x89PNG\r\n")):
                with page.expect_download() as download:
                    page.get_by_role("button", name=f"Save “{figure}” as {kind}").click()
                assert Path(download.value.path()).read_bytes().startswith(begins)
                assert download.value.suggested_filename.endswith(f".{kind.lower()}")


def test_protocols_and_seeds_are_chosen_and_the_network_is_scrubbed(address: str, browser: Browser) -> None:
    with open_page(browser, address) as page:
        summary = page.get_by_role("grid", name="Means over seeds")
        expect(summary).to_contain_text("ppfs")
        page.get_by_role("checkbox", name="ppfs").uncheck()
        expect(summary).not_to_contain_text("ppfs")
        page.get_by_role("checkbox", name="3").uncheck()
        expect(page.get_by_role("combobox", name="Run").get_by_role("option")).to_have_count(4)
        page.get_by_role("combobox", name="Case").select_option("2")
        expect(page.get_by_role("heading", name="Goodput, case 2")).to_be_visible()
        slider = page.get_by_role("slider", name="Time in the measurement")
        slider.focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".scrub-time")).to_have_text("0.50 s")
        page.get_by_role("button", name="Mean of the run").click()
        expect(page.locator(".scrub-time")).to_have_text("mean")
        page.get_by_role("grid", name="Directions of links").get_by_text("S0 to S4").click()
        expect(page.get_by_role("heading", name="Utilisation of S0-S4")).to_be_visible()
        for name in ("ospf", "mstcp"):
            page.get_by_role("checkbox", name=name).uncheck()
        expect(page.get_by_text("Choose at least one protocol and one seed.")).to_be_visible()


@WIDTHS
def test_results_have_no_serious_fault_of_access(
    address: str, browser: Browser, width: int, is_dark: bool
) -> None:
    with open_page(browser, address, width=width, is_dark=is_dark) as page:
        expect(page.get_by_role("heading", name="Network over time")).to_be_visible()
        expect(page.locator(".chart canvas").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert cut_cells(page) == []
        assert serious_faults(page) == []


def test_names_that_contain_markup_are_text(browser: Browser) -> None:
    results = make_results((MARKUP,), ("1",), seeds=2, duration_s=1.0, scenario=MARKUP)
    results.runs[0].flows[0].flow = results.runs[1].flows[0].flow = MARKUP
    results.runs[0].why_invalid, results.runs[0].valid = [MARKUP], False
    with (
        PageServer(Content([FinishedResults(results, MARKUP)])) as server,
        open_page(browser, server.address) as page,
    ):
        expect(page.get_by_role("heading", name=MARKUP, exact=True)).to_be_visible()
        expect(page.get_by_role("grid", name="Means over seeds")).to_contain_text(MARKUP)
        page.get_by_text("Which, and why").click()
        expect(page.get_by_role("listitem")).to_contain_text(MARKUP)
        with page.expect_download() as download:
            page.get_by_role("button", name="Save “Goodput, case 1” as SVG").click()
        assert "<img" not in Path(download.value.path()).read_text()
        assert page.locator("img[src=x]").count() == 0


def test_an_address_without_its_token_says_what_to_open(address: str, browser: Browser) -> None:
    with open_page(browser, address.partition("#")[0], allowed=("401",)) as page:
        expect(page.get_by_text("Open the whole address that mstcp-lab printed")).to_be_visible()


class Gate:
    """Hands events on, and holds the runs up after the first that has ended until it is opened."""

    def __init__(self, take: Any) -> None:
        self.opened = threading.Event()
        self._take = take

    def __call__(self, event: Event) -> None:
        self._take(event)
        if isinstance(event, RunFinished):
            assert self.opened.wait(120)


def simulated(tmp_path: Path, *more: str) -> tuple[Job, argparse.Namespace]:
    argv = [
        "run",
        "butterfly",
        "--engine",
        "sim",
        "--protocol",
        "ospf,mstcp",
        "--case",
        "1",
        "--jobs",
        "1",
    ]
    argv += ["--seeds", "2", "--duration", "1", "--out", str(tmp_path / "out"), "--watch", *more]
    args = make_parser().parse_args(argv)
    return job_from(args, 0.0), args


def test_a_simulated_run_is_watched_from_start_to_end_with_a_reload_in_the_middle(
    tmp_path: Path, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    job, args = simulated(tmp_path)
    with watching(job, args) as take:
        address = capsys.readouterr().err.split()[-1]
        gate = Gate(take)
        runs = threading.Thread(target=runner.run, args=(job, gate))
        with open_page(browser, address) as page:
            expect(page.get_by_text("No run has ended yet")).to_be_visible()
            expect(page.locator(".run.waiting[role=img]")).to_have_count(4)
            runs.start()
            for _ in range(2):
                expect(page.get_by_role("heading", name="1 of 4 runs ended")).to_be_visible()
                expect(page.get_by_role("grid", name="Means over seeds")).to_contain_text("ospf")
                page.reload()
            gate.opened.set()
            expect(page.get_by_role("heading", name="4 of 4 runs ended")).to_be_visible()
            expect(page.get_by_role("img", name="seed 2: valid, flow 1")).to_have_count(2)
            runs.join()
            expect(page.get_by_text("4 runs of 1 s")).to_be_visible()
            expect(page.get_by_role("grid", name="Means over seeds").get_by_role("row")).to_have_count(5)
            dots = saved_csv(page, "Goodput, case 1")
    document = Results.read(tmp_path / "out" / "results.json")
    assert sorted(float(row["goodput_bps"]) for row in dots) == sorted(
        flow.goodput_bps for run in document.runs for flow in run.flows
    )


@contextmanager
def told(tmp_path: Path) -> Iterator[tuple[Job, Watch, PageServer]]:
    """Serve a page about a live run of which the test tells."""
    job, _ = simulated(tmp_path)
    job = job.model_copy(update={"engine": "live", "protocols": ("mstcp",), "seeds": (1,)})
    (job.out / "runs").mkdir(parents=True)
    log = EventLog()
    watch = Watch(job, log)
    with PageServer(Content([GrowingResults(job)], watch.plan, log)) as server:
        log.changed = server.wake
        yield job, watch, server


def measured(step: int) -> list[Event]:
    links = [0.01 * step] * 22
    return [
        TimeMeasured(seconds=0.25 * step),
        RatesMeasured(seconds=0.25 * step, links=links, streams_bps={"1": [1e6 * step, 2e6]}),
    ]


def beginning(job: Job) -> list[Event]:
    streams = [
        ConnectedStream(path=["T0", "S0", "S4", "T2"], rate_bps=4e6),
        ConnectedStream(path=["T0", "S0", "S2", "S3", "S4", "T2"], rate_bps=4.5e6),
    ]
    flow = ConnectedFlow(flow="1", src="T0", dst="T2", requested_bps=8.5e6, streams=streams)
    return [
        RunStarted(run=job.plans()[0].label, number=1, planned=1),
        PhaseBegun(text="connecting"),
        FlowsConnected(flows=[flow]),
    ]


def test_a_live_run_is_caught_up_without_a_gap(tmp_path: Path, browser: Browser) -> None:
    figure = "Rates of the streams, case 1 with mstcp, seed 1"
    with (
        told(tmp_path) as (job, watch, server),
        open_page(browser, server.address, allowed=("ERR_",)) as page,
    ):
        expect(page.get_by_text("No run has ended yet")).to_be_visible()
        for event in [*beginning(job), *measured(1), *measured(2)]:
            watch.take(event, 0.0)
        expect(page.get_by_text("0.5 of 1 s measured")).to_be_visible()
        expect(page.get_by_text("flow 1: T0 → S0 → S4 → T2")).to_be_visible()
        page.reload()
        expect(page.get_by_text("0.5 of 1 s measured")).to_be_visible()
        page.context.set_offline(True)
        for event in measured(3):
            watch.take(event, 0.0)
        page.context.set_offline(False)
        busy = "99% of the processor was busy, above 97%"
        watch.take(ValidityMeasured(seconds=1.0, cpu_busy=0.99, lateness_max_us=None, problems=[busy]), 0.0)
        for event in measured(4):
            watch.take(event, 0.0)
        expect(page.get_by_text("Not valid if it ended now")).to_be_visible()
        expect(page.get_by_text("1.0 of 1 s measured")).to_be_visible()
        rows = [row for row in saved_csv(page, figure) if "S0 → S4" in row["line"]]
        assert [float(row["rate_bps"]) for row in rows] == [1e6, 2e6, 3e6, 4e6]
        assert [float(row["time_s"]) for row in rows] == [0.25, 0.5, 0.75, 1.0]

        run = make_run("mstcp", "1", 1, 1.0, job.network)
        write_output(job.result_path(1), run.model_dump_json())
        watch.take(RunFinished(run=job.plans()[0].label, summary="flow 1 8.50 Mbit/s"), 0.0)
        watch.end("finished", "", 0.0)
        expect(page.get_by_role("heading", name="All runs have ended")).to_be_visible()
        expect(page.get_by_role("grid", name="Means over seeds").get_by_role("row")).to_have_count(3)
        expect(page.get_by_text(f"mstcp-lab browse {job.out}")).to_be_visible()


@WIDTHS
def test_a_live_run_has_no_serious_fault_of_access(
    tmp_path: Path, browser: Browser, width: int, is_dark: bool
) -> None:
    with (
        told(tmp_path) as (job, watch, server),
        open_page(browser, server.address, width=width, is_dark=is_dark) as page,
    ):
        for event in [*beginning(job), *measured(1), *measured(2)]:
            watch.take(event, 0.0)
        expect(page.locator(".now-figures canvas").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert serious_faults(page) == []


def test_a_server_that_is_gone_is_told(tmp_path: Path, browser: Browser) -> None:
    with told(tmp_path) as (job, watch, server):
        opened = open_page(browser, server.address, allowed=("ERR_",))
        page = opened.__enter__()
        for event in beginning(job):
            watch.take(event, 0.0)
        expect(page.get_by_text("connecting", exact=True)).to_be_visible()
    expect(page.get_by_text("The connection to mstcp-lab is lost")).to_be_visible()
    expect(page.get_by_text("open its results with")).to_be_visible()
    opened.__exit__(None, None, None)
