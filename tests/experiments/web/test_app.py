"""The server of the lab's page: who may ask what, and that results are those of the document."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from experiments import cli, runner
from experiments.cli.command_line import make_parser
from experiments.cli.run import job_from
from experiments.cli.watch import watching
from experiments.errors import ScenarioError
from experiments.model.results import Results
from experiments.sweep.plan import Conditions, Point, Sweep
from experiments.sweep.store import PointResult
from experiments.sweep.summary import document
from experiments.web.app import Content
from experiments.web.documents import FinishedResults
from experiments.web.open_documents import open_documents
from experiments.web.server import PageServer, PortTaken
from experiments.web.watching import Watch
from tests.fakes.lab import LAB_COMMAND
from tests.fakes.results import make_results
from tests.web.page_types import check_answer


@pytest.fixture(scope="module")
def results() -> Results:
    return make_results(("ospf", "mstcp"), seeds=2, duration_s=2.0)


@dataclass
class Client:
    """Asks a served page, by default as the page itself does."""

    http: httpx.Client
    token: str

    def get(self, path: str, method: str = "GET", **headers: str) -> httpx.Response:
        return self.http.request(method, path, headers={"Authorization": f"Bearer {self.token}", **headers})


@pytest.fixture(scope="module")
def client(results: Results) -> Iterator[Client]:
    with PageServer(Content([FinishedResults(results, "here")])) as server:
        address, _, token = server.address.partition("/#token=")
        with httpx.Client(base_url=address, timeout=30) as http:
            yield Client(http, token)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1", "localhost:1"])
@pytest.mark.parametrize("path", ["/", "/page/page.js", "/api/session"])
def test_another_name_for_this_address_is_refused(client: Client, host: str, path: str) -> None:
    assert client.get(path, Host=host).status_code == 403


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", "Basic wrong"])
def test_data_ask_for_the_token(client: Client, authorization: str) -> None:
    for path in ("/api/session", "/api/documents/0", "/api/documents/0/runs/1/flows", "/api/events"):
        answer = client.get(path, Authorization=authorization)
        assert answer.status_code == 401
        assert "whole address" in answer.json()["detail"]


def test_the_page_itself_has_no_data_and_needs_no_token(client: Client) -> None:
    for path in ("/", "/page/page.js", "/page/page.css", "/page/icon.svg"):
        answer = client.http.get(path)
        assert answer.status_code == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(client: Client, method: str) -> None:
    assert client.get("/api/session", method).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/page/sources.sha256",
        "/page/..%2f__init__.py",
        "/page/../page.js",
        "/api/documents/1",
        "/api/documents/-1",
        "/api/documents/0/runs/0/flows",
        "/api/documents/0/runs/9/row",
        "/api/documents/0/runs/1/everything",
    ],
)
def test_what_is_not_there_is_not_there(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404


def test_a_run_is_that_of_the_document(client: Client, results: Results) -> None:
    def get(path: str) -> Any:
        return client.get(f"/api/documents/0{path}").json()

    check_answer("ResultsOverview", get(""))
    rows = get("")["runs"]
    assert [(row["case"], row["protocol"], row["seed"]) for row in rows] == [
        (run.case, run.protocol, run.seed) for run in results.runs
    ]
    for row, run in zip(rows, results.runs, strict=True):
        assert [flow["goodput_bps"] for flow in row["flows"]] == [flow.goodput_bps for flow in run.flows]
        flows, links = get(f"/runs/{row['number']}/flows"), get(f"/runs/{row['number']}/links")
        for name, answers in (("RunRow", [row]), ("FlowPart", flows), ("LinkResult", links)):
            for answer in answers:
                check_answer(name, answer)
        assert [flow["time_s"] for flow in flows] == [flow.series.time_s for flow in run.flows]
        assert [flow["delay_cdf_s"] for flow in flows] == [flow.series.delay_cdf_s for flow in run.flows]
        assert links == [link.model_dump(mode="json") for link in run.links]


def test_a_page_that_comes_late_is_told_from_where_it_was(results: Results) -> None:
    content = Content([FinishedResults(results, "here")])
    with PageServer(content) as server:
        content.log.changed = server.wake
        content.log.add({"event": "first"})
        address, _, token = server.address.partition("#token=")
        events = read_events(f"{address}api/events", token, last="0")
        assert next(events)["event"] == "first"
        content.log.add({"event": "second"})
        assert next(events)["event"] == "second"
        assert server.has_pages
        events.close()
        later = read_events(f"{address}api/events", token, last="1")
        assert next(later)["event"] == "second"
        later.close()


def test_pages_that_go_in_the_middle_of_an_answer_are_not_waited_for(results: Results) -> None:
    """What answers them may be suspended anywhere, and is cleared away whenever the collector comes."""
    content = Content([FinishedResults(results, "here")])
    for number in range(200):
        content.log.add({"event": "long", "number": number, "text": "x" * 20_000})
    gc.disable()
    try:
        with PageServer(content) as server:
            address, _, token = server.address.partition("#token=")
            for _ in range(20):
                with contextlib.closing(read_events(f"{address}api/events", token, last="0")) as events:
                    next(events)
            content.log.changed = server.wake
            until_s = time.monotonic() + 30
            while server.has_pages and time.monotonic() < until_s:
                content.log.add({"event": "more"})
                time.sleep(0.05)
            assert not server.has_pages
    finally:
        gc.enable()


def read_events(url: str, token: str, last: str) -> Generator[dict[str, Any], None, None]:
    headers = {"Authorization": f"Bearer {token}", "Last-Event-ID": last}
    with httpx.stream("GET", url, headers=headers, timeout=30) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def test_a_port_that_is_taken_is_a_sentence(results: Results) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port}.*Name another one"):
            PageServer(Content([FinishedResults(results, "here")]), port)


def test_a_run_with_a_page_that_cannot_be_served_does_not_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        argv = ["run", "butterfly", "--engine", "sim", "--out", str(tmp_path / "out"), "--watch"]
        assert cli.main([*argv, "--watch-port", port]) == 1
    assert f"port {port}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_opened_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["browse", str(tmp_path)]) == 2
    assert "give a results folder or its results.json" in capsys.readouterr().err


def test_a_watched_run_leaves_the_same_bytes_and_what_fails_on_the_page_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, *, watch: bool) -> dict[str, bytes]:
        argv = ["run", "butterfly", "--engine", "sim", "--protocol", "mstcp", "--duration", "1"]
        argv += ["--seeds", "2", "--out", str(tmp_path / name), *(["--watch"] if watch else [])]
        args = make_parser().parse_args(argv)
        job = job_from(args, 0.0)
        with watching(job, args) as take:
            runner.run(job, take)
        return {path.name: path.read_bytes() for path in (tmp_path / name / "runs").iterdir()}

    plain = run("plain", watch=False)
    assert len(plain) == 4
    assert run("watched", watch=True) == plain
    monkeypatch.setattr(Watch, "take", lambda *_: 1 / 0)
    assert run("failing", watch=True) == plain
    assert capsys.readouterr().err.count("The page shows nothing new any more") == 1


def test_a_folder_of_results_opens_all_of_them(tmp_path: Path, results: Results) -> None:
    for name in ("b/results.json", "a/deep/results.json"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(results.to_json())
    opened = open_documents(tmp_path)
    assert [document.overview()["source"] for document in opened] == [
        str(tmp_path / "a" / "deep"),
        str(tmp_path / "b"),
    ]
    (single,) = open_documents(tmp_path / "b" / "results.json")
    assert single.overview()["scenario"] == "butterfly"


def test_a_sweep_is_opened_with_its_means(tmp_path: Path) -> None:
    sweep = Sweep(
        conditions=Conditions(network="nets/ring.json"), loads=(0.5, 1.0), protocols=("ospf",), seeds=2
    )
    points = [point_result(point) for point in sweep.points()]
    (tmp_path / "sweep.json").write_text(json.dumps(document(sweep, points)))
    (opened,) = open_documents(tmp_path)
    overview = opened.overview()
    check_answer("SweepOverview", overview)
    assert (overview["kind"], overview["scenario"], overview["seeds"]) == ("sweep", "ring", 2)
    assert [(row["load"], row["received_bps"]["mean"]) for row in overview["rows"]] == [
        (0.5, 5e6),
        (1.0, 1e7),
    ]
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(ScenarioError, match=r"sweep\.json: .*is not the document of a sweep"):
        open_documents(tmp_path)


def point_result(point: Point) -> PointResult:
    counts = (
        "packets_sent",
        "packets_delivered",
        "packets_dropped",
        "packets_in_flight",
        "retransmits",
        "events",
    )
    fields: dict[str, Any] = dict.fromkeys((*counts, "bytes_wrong", "peak_rss_bytes"), 0)
    fields |= dict.fromkeys(("flows", "flows_admitted", "paths", "bytes_written", "bytes_read"), 1)
    fields |= dict.fromkeys(("requested_bps", "admitted_bps", "received_bps"), point.load * 1e7)
    return PointResult(point=point, delay_mean_s=0.01, wall_s=0.1, **fields)


def test_what_solve_wrote_is_told_how_to_open(tmp_path: Path) -> None:
    (tmp_path / "solution.html").write_text("")
    with pytest.raises(ScenarioError, match=r"open its solution\.html"):
        open_documents(tmp_path)


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (
            ("run", "butterfly", "--engine", "sim", "--duration", "5000", "--watch", "--out", "OUT"),
            130,
            "Stopped; 0 of",
        ),
        (("browse", "RESULTS"), 0, "Stopped."),
    ],
)
def test_ctrl_c_ends_all(
    tmp_path: Path, results: Results, command: tuple[str, ...], status: int, said: str
) -> None:
    (tmp_path / "results.json").write_text(results.to_json())
    places = {"OUT": str(tmp_path / "out"), "RESULTS": str(tmp_path)}
    argv = [*LAB_COMMAND, *(places.get(word, word) for word in command)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        address = re.search(r"http://\S+/", process.stderr.readline())
        assert address is not None
        assert httpx.get(address[0], timeout=30).status_code == 200
        process.send_signal(signal.SIGINT)
        assert said in process.stderr.read()
        assert process.wait(60) == status
    with pytest.raises(httpx.ConnectError):
        httpx.get(address[0], timeout=30)
