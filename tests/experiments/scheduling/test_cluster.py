"""`--scheduler`: studies, runs and sweeps on a Dask cluster of real worker processes on this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments import cli
from experiments.engines.sim.process import Processes, SimulationFailed
from experiments.errors import ClusterUnreachable, RunFailed
from experiments.installation import ROOT
from experiments.scheduling.cluster import Cluster
from experiments.studies import measure, schema
from tests.fakes.lab import Lab
from tests.fakes.waiting import wait_until

STUDY = """
format = 1
name = "small"
title = "Three small runs"
source = "none"
duration_s = 1.0
[base]
links = [{ ends = ["A", "B"], rate_bps = 10e6, delay_us = 5000, queue_packets = 50, loss = 0.005 }]
[[base.flows]]
name = "1"
src = "A"
dst = "B"
protocol = "tcp"
traffic = { kind = "bulk" }
[[axes]]
name = "congestion control"
levels = [
    { name = "reno", set = { "tcp.congestion_control" = "reno" } },
    { name = "cubic", set = { "tcp.congestion_control" = "cubic" } },
]
[metrics]
mbps = { of = "flows.1.goodput_bps", scale = 1e-6 }
resent = { of = "flows.1.streams.0.retransmits" }
[[claims]]
claim = "Something arrives."
source = "none"
by = "mbps"
holds = [{ case = "reno", above = 0.1 }]
"""


class LocalCluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.address_file = folder / "scheduler.json"
        self._start("scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
        wait_until(self.address_file.exists, "the scheduler's address")
        self.address: str = json.loads(self.address_file.read_text())["address"]
        self.workers = [
            self._start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
            for _ in range(workers)
        ]
        log = folder / "worker.log"
        wait_until(lambda: log.read_text().count("Registered to") >= workers, "the workers")

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        files = ["--scheduler-file", str(self.address_file)]
        with (self._folder / f"{role}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", role, *files, *options],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        self._processes.append(process)
        return process

    @property
    def scheduler(self) -> subprocess.Popen[bytes]:
        return self._processes[0]

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    started = LocalCluster(tmp_path_factory.mktemp("cluster"), workers=2)
    yield started
    started.close()


pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(600),
]


def test_a_worker_that_is_killed_in_the_middle_costs_no_result_and_doubles_none(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    study = schema.parse(STUDY, "small")
    here = measure.run([study], 6, Processes())[0]
    ended: list[str] = []

    def report(label: str) -> None:
        ended.append(label)
        if len(ended) == 3:
            cluster.workers[0].send_signal(signal.SIGKILL)

    keep = measure.StudyStore(tmp_path)
    simulator = Cluster(cluster.address)
    assert simulator.at_once >= 2
    [there] = measure.run([study], 6, simulator, keep=keep, report=report)
    simulator.stop()
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert there == here
    assert len(ended) == len(set(ended)) == 12
    keys = [json.loads(line)["key"] for line in (tmp_path / measure.RUNS).read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 12


@pytest.mark.parametrize("whole", [False, True])
def test_a_cluster_that_dies_in_the_middle_is_said_and_what_was_finished_is_kept(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = 100
    dying = LocalCluster(tmp_path, workers=2)

    def report(label: str) -> None:
        for process in [*dying.workers, *([dying.scheduler] if whole else [])]:
            process.kill()

    try:
        study = schema.parse(STUDY, "small")
        keep = measure.StudyStore(tmp_path / "out")
        simulator = Cluster(dying.address)
        monkeypatch.setattr("experiments.scheduling.cluster.WORKERS_S", 3.0)
        with pytest.raises(RunFailed, match="the cluster at .* is gone"):
            measure.run([study], seeds, simulator, keep=keep, report=report)
    finally:
        dying.close()
    kept = measure.StudyStore(tmp_path / "out", resume=True)
    finished = [run for run in measure.plan(study, seeds) if kept.has(run)]
    assert 1 <= len(finished) < 2 * seeds
    assert all(kept.figures(run) == keep.figures(run) for run in finished)


def test_run_writes_the_same_results_wherever_it_ran(lab: Lab, cluster: LocalCluster, tmp_path: Path) -> None:
    options = ["run", "butterfly", "--engine", "sim", "--protocol", "ospf,mstcp", "--case", "1"]
    options += ["--duration", "1", "--no-report", "--out"]
    lab(*options, tmp_path / "here")
    lab(*options, tmp_path / "there", "--scheduler", cluster.address)
    for name in ("001.json", "002.json"):
        here, there = ((tmp_path / place / "runs" / name).read_bytes() for place in ("here", "there"))
        assert here == there
    lab.refusal(*options, tmp_path / "traced", "--scheduler", cluster.address, "--trace", "csv", status=1)


def test_a_refused_description_is_told_as_here(cluster: LocalCluster) -> None:
    simulator = Cluster(cluster.address)
    with pytest.raises(SimulationFailed, match="needs at least one flow"):
        simulator.run({"format": 1, "duration_s": 1.0, "links": [], "flows": []})
    simulator.stop()


def test_an_address_that_does_not_answer_is_a_sentence(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    monkeypatch.setattr("experiments.scheduling.cluster.ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterUnreachable, match=r"Start `dask scheduler`"):
            Cluster(address)
    told = lab.refusal("reproduce", "kato-cc", "--seeds", "1", "--scheduler", "tcp://127.0.0.1:1", status=1)
    assert "--scheduler tcp://127.0.0.1:1" in told
    assert "Traceback" not in told
    assert "--scheduler nowhere at all" in lab.refusal(
        "reproduce", "kato-cc", "--scheduler", "nowhere at all", status=1
    )


def test_only_the_simulator_has_runs_for_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["run", "butterfly", "--engine", "live", "--scheduler", "tcp://127.0.0.1:1"]
    assert cli.main([*options, "--watch", "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr()
    # Neither runs nor a page are announced.
    assert said.out == ""
    [sentence] = said.err.splitlines()
    assert sentence.endswith("Leave --scheduler out, or take --engine sim.")
    assert not (tmp_path / "out").exists()
