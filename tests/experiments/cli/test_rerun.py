"""`mstcp-lab rerun`: a results document is all that is needed, and the simulator's bytes are the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments import rerunning
from experiments.errors import ScenarioError
from experiments.model.results import Results
from tests.fakes.lab import lab_process
from tests.paths import EXTENSIONS

LONGEST = EXTENSIONS / "longest.py"
SCENARIO = """
format = 1
name = "own"
network = "own-network.toml"
duration_s = 1.0
protocols = ["ospf"]

[tcp]
congestion_control = "method.py:Halving"

[cases.few]
demands = { file = "demands.csv", requested_bps = 2e6 }

[cases.other.flows.1]
src = "A"
dst = "B"
requested_bps = 3e6
"""
NETWORK = """
format = 1
name = "own"
nodes = [
    { name = "A", kind = "host", x = 0, y = 0 },
    { name = "B", kind = "host", x = 3, y = 0 },
    { name = "S", kind = "switch", x = 1, y = 0 },
    { name = "R", kind = "switch", x = 2, y = 0 },
]
links = [
    { ends = ["A", "S"], rate_bps = 20e6, delay_us = 100 },
    { ends = ["S", "R"], rate_bps = 4e6, delay_us = 3000, loss = 0.01 },
    { ends = ["R", "B"], rate_bps = 20e6, delay_us = 100 },
]
"""
METHOD = """
class Halving:
    def on_ack(self, window, acked):
        window.cwnd_bytes += acked.bytes * window.mss_bytes / window.cwnd_bytes

    def on_loss(self, window, now_s, flight_bytes):
        window.ssthresh_bytes = max(flight_bytes / 2, 2 * window.mss_bytes)
"""


def reproducible(out: Path) -> bytes:
    """Return what of a document does not name the machine, as docs/results.md says."""
    document: dict[str, Any] = json.loads((out / "results.json").read_text())
    del document["environment"], document["other_environments"]
    return json.dumps(document).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one's own: scenario, network, demands and an extension, and results/ made of them."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.toml").write_text(SCENARIO)
    (folder / "method.py").write_text(METHOD)
    (folder / "own-network.toml").write_text(NETWORK)
    (folder / "demands.csv").write_text("src,dst,rate_bps,size_bytes\nA,B,1e6,\nB,A,,60e3\n")
    shutil.copy(LONGEST, folder)
    seeds = ("--seeds", "2", "--set", "links.S-R.loss=0.02", "--protocol", "ospf,longest")
    job = ("--extend", "longest.py", "run", "own.toml", "--engine", "sim", *seeds)
    done = lab_process(folder, *job, "--no-report", "--out", "results")
    assert done.returncode == 0, done.stderr
    for name in ("own.toml", "own-network.toml", "demands.csv"):
        (folder / name).unlink()
    return folder


def test_the_same_bytes_from_the_document_alone(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    shutil.copy(folder / "results" / "results.json", alone)
    shutil.copy(folder / "method.py", tmp_path)  # named relative to the folder that the runs are made in
    done = lab_process(tmp_path, "rerun", "alone.json", "--no-report", "--out", "again")
    assert done.returncode == 0, done.stderr
    assert "The runs are those of alone.json, to the byte.\n" in done.stderr
    assert reproducible(tmp_path / "again") == reproducible(folder / "results")
    names = sorted(path.name for path in (folder / "results" / "runs").iterdir())
    assert len(names) == 8
    for name in names:
        runs = [(out / "runs" / name).read_bytes() for out in (folder / "results", tmp_path / "again")]
        assert runs[0] == runs[1]


def test_what_differs_is_told(folder: Path, tmp_path: Path) -> None:
    document = json.loads((folder / "results" / "results.json").read_text())
    document["runs"][3]["flows"][0]["bytes_read"] += 1
    (tmp_path / "other.json").write_text(json.dumps(document))
    done = lab_process(tmp_path, "rerun", "other.json", "--no-report", "--out", "again")
    assert done.returncode == 1
    wrong = [line for line in done.stderr.splitlines() if "is not as in other.json" in line]
    assert len(wrong) == 1
    assert wrong[0].startswith(
        "mstcp-lab: Case few with longest, seed 2 is not as in other.json: flows.0.bytes_"
    )


def test_a_file_that_it_needs_and_is_not_as_it_was(folder: Path, tmp_path: Path) -> None:
    document = folder / "results" / "results.json"
    moved = tmp_path / "longest.py"
    shutil.move(folder / "longest.py", moved)
    again = ("rerun", str(document), "--no-report", "--out", str(tmp_path / "again"))
    try:
        done = lab_process(tmp_path, *again)
        assert done.returncode == 2
        needed = f"it needs the extension longest.py, which is not at {folder}/longest.py any more"
        assert done.stderr == f"mstcp-lab: {document}: {needed}: give it with --extend longest.py.\n"
        assert not (tmp_path / "again").exists()
        moved.write_text(moved.read_text() + "\n# changed\n")
        done = lab_process(tmp_path, "--extend", "longest.py", *again)
        assert done.returncode == 0, done.stderr
        assert f"{moved} is not the longest.py that {document} was made with" in done.stderr
        (folder / "longest.py").write_text("# another")
        done = lab_process(tmp_path, *again)
        assert (done.returncode, "has changed at" in done.stderr) == (2, True)
    finally:
        shutil.copy(LONGEST, folder)


def test_runs_that_failed_or_were_stopped_are_made_too(folder: Path) -> None:
    results = Results.read(folder / "results" / "results.json")
    whole = rerunning.rerun_of(results, "whole", Path("out")).job
    partial = results.model_copy(update={"runs": results.runs[5:6]})
    assert rerunning.rerun_of(partial, "partial", Path("out")).job == whole
    assert len(whole.plans()) == 8
    # The method lies where it lay, and is named from there.
    assert rerunning.rerun_of(results, "whole", Path("out")).folder == folder
    (folder / "method.py").rename(folder / "moved.py")
    try:
        with pytest.raises(
            ScenarioError, match=r"it needs the method method.py, which is not at .* any more"
        ):
            rerunning.rerun_of(results, "whole", Path("out"))
    finally:
        (folder / "moved.py").rename(folder / "method.py")


def test_run_names_the_command_for_results(folder: Path, tmp_path: Path) -> None:
    for given in (folder / "results", folder / "results" / "results.json"):
        done = lab_process(tmp_path, "run", str(given))
        assert done.returncode == 2
        assert "`mstcp-lab rerun " in done.stderr
    done = lab_process(tmp_path, "completion", "bash")
    assert "rerun" in done.stdout
