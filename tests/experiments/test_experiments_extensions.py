"""A protocol, a workload and a metric from outside the package, one file each."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from experiments.model.results import Results

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "extensions"
LONGEST = ["T0", "S0", "S2", "S1", "S5", "S3", "S4", "T2"]
WORKLOAD = "bursts:first=2kB,every=250ms"


def lab(*arguments: str, extend: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    """Run `mstcp-lab` in a process of its own: what is registered stays registered."""
    environment = {key: value for key, value in os.environ.items() if key != "MSTCP_LAB_EXTENSIONS"}
    call = [sys.executable, "-m", "experiments.cli", "--extend", str(extend), *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)


def simulate(out: Path, *arguments: str, engine: str = "sim", extend: Path = FOLDER) -> Results:
    case = ("--case", "1", "--duration", "2", "--out", str(out), "--json")
    done = lab("run", "butterfly", "--engine", engine, *case, *arguments, extend=extend)
    assert done.returncode == 0, done.stderr
    return Results.model_validate_json(done.stdout)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extensions") / "out"
    simulate(folder, "--protocol", "ospf,longest", "--workload", WORKLOAD)
    return folder


@pytest.fixture(scope="module")
def results(out: Path) -> Results:
    return Results.read(out / "results.json")


def test_they_are_listed_beside_the_built_in_ones() -> None:
    done = lab("list")
    assert "longest         plain TCP on the longest simple path by delay" in done.stdout


def test_a_protocol_takes_its_own_paths_in_the_simulator(results: Results) -> None:
    paths = {run.protocol: [each.path for each in run.flows[0].allocated] for run in results.runs}
    assert paths["longest"] == [LONGEST] != paths["ospf"]
    detour = {
        run.protocol: next(link.utilisation for link in run.links if link.link == "S0->S2")
        for run in results.runs
    }
    assert detour["ospf"] == 0.0
    assert (detour["longest"] or 0.0) > 0.01


def test_a_workload_writes_what_it_decided(results: Results) -> None:
    flow = results.runs[0].flows[0]
    assert flow.workload == {"kind": "bursts", "first_bytes": 2000, "every_s": 0.25}
    settings = results.settings
    end_s = settings["duration_s"] + settings["warm_up_s"]
    bursts = len([n for n in range(1000) if n * 0.25 < end_s])
    # A connection is open one handshake after the flow's start, so the last burst may be after the end.
    assert flow.bytes_written in {2000 * count * (count + 1) // 2 for count in (bursts, bursts - 1)}
    assert flow.bytes_wrong == 0


def test_a_metric_is_kept_with_the_results_and_stands_in_every_table(out: Path, results: Results) -> None:
    for run in results.runs:
        shares = [flow.metrics["goodput_share"] for flow in run.flows]
        assert sum(share or 0.0 for share in shares) == pytest.approx(1.0)
    # The document stands alone: exported and printed without the extension.
    plain = [sys.executable, "-m", "experiments.cli"]
    subprocess.run(
        [*plain, "export", str(out), "--csv", str(out / "csv")], check=True, cwd=ROOT, capture_output=True
    )
    with (out / "csv" / "flows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["goodput_share"]) for row in rows] == [
        flow.metrics["goodput_share"] for run in results.runs for flow in run.flows
    ]
    done = lab("report", str(out))
    assert "share %" in done.stdout
    page = (out / "report.html").read_text()
    assert '<th scope="col">share %</th>' in page
    done = lab("compare", str(out), str(out), "--json")
    assert '"goodput_share": {' in done.stdout


def test_resume_finds_what_the_job_was_given(out: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.cli", "resume", str(out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, "is there and valid" in done.stderr) == (0, True), done.stderr


@pytest.mark.root
@pytest.mark.timeout(300)
def test_they_run_on_real_components() -> None:
    """From and into a folder that the worker mounts a /run of its own over."""
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        extend = Path(shutil.copytree(FOLDER, Path(folder, "extensions")))
        arguments = ("--protocol", "longest", "--workload", WORKLOAD)
        (run,) = simulate(Path(folder, "out"), *arguments, engine="live", extend=extend).runs
    for flow in run.flows:
        assert flow.bytes_read == flow.bytes_written > 0
        assert flow.workload is not None
        assert flow.metrics["goodput_share"] is not None
    assert [each.path for each in run.flows[0].allocated] == [LONGEST]


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
    (information / "entry_points.txt").write_text("[mstcp_lab.extensions]\nbursts = further_bursts\n")
    (tmp_path / "further_bursts.py").write_text((FOLDER / "bursts.py").read_text())
    program = "from experiments.workloads import WORKLOADS; print(list(WORKLOADS))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout.strip().endswith("'bursts']"), done.stderr
