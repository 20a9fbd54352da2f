"""A transport, a routing, a workload, a metric and a trace from outside the package, one file each."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest

from experiments.model.results import Results
from tests.fakes.lab import LAB_COMMAND, lab_process
from tests.paths import EXTENSIONS, ROOT

EMPTY = tempfile.mkdtemp(prefix="extensions-")
"""Where everything is run: nothing of the repository is there."""
LONGEST = ["T0", "S0", "S2", "S1", "S5", "S3", "S4", "T2"]
WORKLOAD = "video:chunk_bytes=60000,chunk_s=0.25"


def lab(*arguments: str, extend: Path = EXTENSIONS) -> subprocess.CompletedProcess[str]:
    """Run `mstcp-lab` in a process of its own: what is registered stays registered."""
    return lab_process(EMPTY, "--extend", str(extend), *arguments)


def simulate(
    out: Path, *arguments: str, engine: str = "sim", extend: Path = EXTENSIONS, scenario: str = "butterfly"
) -> Results:
    case = ("--case", "1", "--duration", "2", "--no-report", "--out", str(out), "--json")
    done = lab("run", scenario, "--engine", engine, *case, *arguments, extend=extend)
    assert done.returncode == 0, done.stderr
    return Results.model_validate_json(done.stdout)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The butterfly with a link that fades, which is no part of the repository."""
    path = tmp_path_factory.mktemp("scenario") / "faded.toml"
    trace = '{ kind = "fading", good_s = 0.3, bad_s = 0.2, bad_loss = 0.1 }'
    built_in = (ROOT / "experiments" / "scenarios" / "butterfly.toml").read_text()
    path.write_text(f'{built_in}\n[[traces]]\nlink = "S0-S4"\ntrace = {trace}\n')
    return path


@pytest.fixture(scope="module")
def out(scenario: Path) -> Path:
    folder = scenario.parent / "out"
    arguments = ("--protocol", "ospf,longest,dummy", "--workload", WORKLOAD)
    simulate(folder, *arguments, scenario=str(scenario))
    return folder


@pytest.fixture(scope="module")
def results(out: Path) -> Results:
    return Results.read(out / "results.json")


def test_they_are_listed_beside_the_built_in_ones() -> None:
    done = lab("list")
    assert "longest         plain TCP on the longest simple path by delay" in done.stdout
    assert "dummy           a byte stream over asyncio's own sockets" in done.stdout


def test_a_routing_takes_its_own_paths_in_the_simulator(results: Results) -> None:
    paths = {run.protocol: [each.path for each in run.flows[0].allocated] for run in results.runs}
    assert paths["longest"] == [LONGEST] != paths["ospf"]
    detour = {
        run.protocol: next(link.utilisation for link in run.links if link.link == "S0->S2")
        for run in results.runs
    }
    assert detour["ospf"] == 0.0
    assert (detour["longest"] or 0.0) > 0.01


def test_a_transport_has_its_own_sender_in_the_simulator(results: Results) -> None:
    ospf, _, dummy = results.runs
    assert dummy.flows[0].allocated == ospf.flows[0].allocated
    windows = {
        run.protocol: run.evidence.flows["2"].connections[0].counters["cwnd_bytes"] for run in results.runs
    }
    assert windows["dummy"] == 20 * 536 != windows["ospf"]


def test_a_workload_writes_what_it_decided_and_measures_itself(results: Results) -> None:
    flow = results.runs[0].flows[0]
    assert flow.workload == {"kind": "video", "chunk_bytes": 60_000, "chunk_s": 0.25}
    settings = results.settings
    most = 60_000 * (1 + int((settings["duration_s"] + settings["warm_up_s"]) / 0.25))
    assert most - 120_000 <= flow.bytes_written <= most
    assert flow.bytes_wrong == 0
    stalls = {run.protocol: [each.metrics["rebuffering_s"] for each in run.flows] for run in results.runs}
    assert all(stall is not None and stall >= 0 for stall in itertools.chain(*stalls.values()))
    assert max(filter(None, stalls["ospf"])) > 0, "the link that fades holds chunks up"


def test_a_trace_changes_its_link_by_the_seed(results: Results) -> None:
    changes = [[(each.time_s, each.settings["loss"]) for each in run.link_changes] for run in results.runs]
    assert len(changes[0]) > 2
    assert changes[0] == changes[1] == changes[2], "one seed, one trace"
    assert [loss for _, loss in changes[0][:3]] == [0.0, 0.1, 0.0]


def test_a_metric_is_kept_with_the_results_and_stands_in_every_table(out: Path, results: Results) -> None:
    for run in results.runs:
        assert all((flow.metrics["jitter_s"] or 0.0) > 0 for flow in run.flows)
    # The document stands alone: exported and printed without the extension.
    lab_process(EMPTY, "export", str(out), "--csv", str(out / "csv")).check_returncode()
    with (out / "csv" / "flows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for name in ("jitter_s", "rebuffering_s"):
        assert [float(row[name]) for row in rows] == [
            flow.metrics[name] for run in results.runs for flow in run.flows
        ]
    done = lab("report", str(out))
    assert "jitter ms" in done.stdout
    page = (out / "report.html").read_text()
    assert '<th scope="col">jitter ms</th>' in page
    assert '<th scope="col">rebuffering_s</th>' in page
    done = lab("compare", str(out), str(out), "--json")
    assert '"jitter_s": {' in done.stdout


def test_a_sweep_has_them_too(tmp_path: Path) -> None:
    sizes = ("--flows", "4", "--loads", "0.5", "--scale", "0.04", "--duration", "1", "--warm-up", "1")
    protocols = ("--protocol", "mstcp,longest,dummy")
    done = lab("sweep", "ring:6", *protocols, *sizes, "--json", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    points = {point["point"]["protocol"]: point for point in json.loads(done.stdout)["points"]}
    assert list(points) == ["mstcp", "longest", "dummy"]
    assert points["longest"]["delay_mean_s"] > points["dummy"]["delay_mean_s"]


def test_browse_shows_them(out: Path) -> None:
    call = [*LAB_COMMAND, "--extend", str(EXTENSIONS), "browse", str(out)]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True, cwd=EMPTY) as process:
        assert process.stderr is not None
        try:
            address, _, token = process.stderr.readline().split()[1].partition("/#token=")
            asked = urllib.request.Request(f"{address}/api/documents/0")
            asked.add_header("Authorization", f"Bearer {token}")
            with urllib.request.urlopen(asked) as answer:
                document = json.load(answer)
        finally:
            process.send_signal(signal.SIGINT)
    assert [run["protocol"] for run in document["runs"]] == ["ospf", "longest", "dummy"]


def test_resume_finds_what_the_job_was_given(out: Path) -> None:
    done = subprocess.run(
        [*LAB_COMMAND, "resume", str(out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=EMPTY,
    )
    assert (done.returncode, "is there and valid" in done.stderr) == (0, True), done.stderr


@pytest.mark.root
@pytest.mark.timeout(600)
def test_they_run_on_real_components() -> None:
    """From and into a folder that the worker mounts a /run of its own over."""
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        extend = Path(shutil.copytree(EXTENSIONS, Path(folder, "extensions")))
        arguments = ("--protocol", "longest,dummy", "--workload", WORKLOAD)
        runs = simulate(Path(folder, "out"), *arguments, engine="live", extend=extend).runs
    for flow in (flow for run in runs for flow in run.flows):
        assert flow.bytes_read == flow.bytes_written > 0
        assert flow.workload is not None
        assert flow.metrics["jitter_s"] is not None
        assert flow.metrics["rebuffering_s"] is not None
    longest, dummy = runs
    assert [each.path for each in longest.flows[0].allocated] == [LONGEST]
    assert [each.path for each in dummy.flows[0].allocated] == [["T0", "S0", "S4", "T2"]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        (
            "from experiments.protocols import PROTOCOLS, register\nregister(PROTOCOLS['ospf'])",
            "The extension ospf is not used: there is a protocol of this name already",
        ),
    ],
)
def test_what_cannot_be_loaded_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "wrong.py").write_text(text)
    done = lab("list", extend=tmp_path / "wrong.py")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = lab("list", extend=tmp_path / "none.py")
    assert (done.returncode, "there is no such file or folder" in done.stderr) == (2, True)


def test_installed_distributions_name_theirs_as_entry_points(tmp_path: Path) -> None:
    information = tmp_path / "further-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: further\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[mstcp_lab.extensions]\nvideo = further_video\n")
    (tmp_path / "further_video.py").write_text((EXTENSIONS / "video.py").read_text())
    program = "from experiments.workloads import WORKLOADS; print(list(WORKLOADS))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=EMPTY,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout.strip().endswith("'video']"), done.stderr
