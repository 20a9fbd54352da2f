"""The runner's loop, its files and its verdict, with an engine that makes results up."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import topologies
from experiments import runner
from experiments.engines.base import Abilities, Clock
from experiments.errors import MissingRequirement, OutputError, RunFailed, UnknownName
from experiments.execution import execute
from experiments.model import scenario
from experiments.model.atomic_files import atomic_file, write_output
from experiments.model.events import Event, PhaseBegun, Report, RunBroken, RunFinished, RunRepeated
from experiments.model.job import Job
from experiments.model.plan import RunPlan
from experiments.model.results import Environment, FlowResult, FlowSeries, Results, RunResult
from experiments.report.notes import environment_sentences


class InventedEngine:
    """Returns results without running anything; fails for the protocols it is told to."""

    name = "invented"
    abilities = Abilities(clock=Clock.MACHINE, protocols=None, drains=True)
    most_at_once = 1

    def __init__(
        self,
        failing: tuple[str, ...] = (),
        wrong_bytes: int = 0,
        invalid_attempts: int = 0,
        revision: str | None = None,
    ) -> None:
        self.revision = revision
        self.failing = failing
        self.invalid_attempts = invalid_attempts
        self.wrong_bytes = wrong_bytes
        self.plans: list[RunPlan] = []

    def check(self, plans: list[RunPlan]) -> None:
        pass

    def stop(self) -> None:
        pass

    def environment(self) -> Environment:
        return Environment(
            kernel="k",
            machine="m",
            cpus=1,
            versions={},
            sysctls={},
            qdiscs=[],
            link_backend=None,
            datapath=None,
            git_revision=self.revision,
            host_load=[],
            valid=True,
            why=[],
        )

    def run_case(self, plan: RunPlan, out: Path, report: Report) -> RunResult:
        self.plans.append(plan)
        if plan.protocol in self.failing:
            raise RunFailed(plan.label, "it was told to.", str(out))
        report(PhaseBegun(text="inventing"))
        attempt = self.plans.count(plan)
        if attempt <= self.invalid_attempts:
            busy = {"valid": False, "why_invalid": [f"attempt {attempt} was too slow"]}
            return invented(plan).model_copy(update=busy)
        return invented(plan, self.wrong_bytes)


def invented(plan: RunPlan, wrong_bytes: int = 0, missing_bytes: int = 0) -> RunResult:
    flows = [
        FlowResult(
            flow=name,
            src=flow.src,
            dst=flow.dst,
            requested_bps=flow.requested_for(plan.protocol),
            allocated=[],
            goodput_bps=1e6,
            delay_s=None,
            out_of_order_ratio=None,
            reorder_buffer_max_bytes=None,
            bytes_written=1000,
            bytes_read=1000 - missing_bytes,
            bytes_wrong=wrong_bytes,
            ticks_skipped=0,
            congestion_control="reno",
            series=FlowSeries(time_s=[], goodput_bps=[], delay_mean_s=[], streams=[], delay_cdf_s=[]),
        )
        for name, flow in plan.case.flows.items()
    ]
    reasons = ["it was invented"] if plan.seed > 1 else []
    return RunResult(
        protocol=plan.protocol,
        case=plan.case_name,
        seed=plan.seed,
        duration_s=plan.duration_s,
        started_at="2000-01-01T00:00:00+00:00",
        valid=not reasons,
        why_invalid=reasons,
        host_cpu_busy=None,
        sysctls={},
        flows=flows,
        links=[],
    )


def make_job(out: Path, **changes: Any) -> Job:
    loaded = scenario.load("butterfly")
    fields: dict[str, Any] = {
        "engine": "live",
        "scenario": loaded,
        "network": topologies.load("butterfly", variant="a"),
        "variant": "a",
        "overrides": {},
        "cases": ("1", "2"),
        "protocols": ("ospf", "mstcp"),
        "seeds": (1, 2),
        "duration_s": 3.0,
        "out": out,
    }
    return Job(**{**fields, **changes})


def run_invented(job: Job, engine: InventedEngine, *, resume: bool = False) -> tuple[Results, list[Event]]:
    events: list[Event] = []
    runner.prepare_output(job.out, resume=resume)
    execute(job, engine, events.append)
    return runner.collect(job, engine), events


def test_every_case_protocol_and_seed_is_run_in_order(tmp_path: Path) -> None:
    engine = InventedEngine()
    results, events = run_invented(make_job(tmp_path), engine)
    assert [plan.slug for plan in engine.plans] == [
        f"{case}-{protocol}-s{seed}" for case in "12" for protocol in ("ospf", "mstcp") for seed in (1, 2)
    ]
    assert [run.case for run in results.runs] == ["1"] * 4 + ["2"] * 4
    assert len([event for event in events if isinstance(event, RunFinished)]) == 8
    assert runner.check_transfers(results.runs) == []
    assert Results.model_validate_json(results.to_json()) == results


def test_a_job_survives_the_pipe_to_the_worker(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    text = job.model_dump_json()
    assert "\n" not in text
    assert Job.model_validate_json(text) == job


def test_a_failed_run_does_not_stop_the_others(tmp_path: Path) -> None:
    results, events = run_invented(make_job(tmp_path), InventedEngine(failing=("ospf",)))
    assert {run.protocol for run in results.runs} == {"mstcp"}
    assert len(results.runs) == 4
    failures = [event.reason for event in events if isinstance(event, RunBroken)]
    assert len(failures) == 4
    assert failures[0].startswith("case 1 with ospf, seed 1 failed: it was told to.")
    assert "Its logs are in" in failures[0]


def test_invalid_runs_make_the_document_invalid(tmp_path: Path) -> None:
    results, _ = run_invented(make_job(tmp_path, cases=("1",), protocols=("ospf",)), InventedEngine())
    assert not results.environment.valid
    assert results.environment.why == ["case 1 with ospf, seed 2: it was invented"]


def test_each_run_says_where_it_was_made(tmp_path: Path) -> None:
    """After `resume` with other programs, the runs of before keep theirs."""
    first = make_job(tmp_path, cases=("1",), protocols=("ospf",), seeds=(1,))
    run_invented(first, InventedEngine(revision="old"))
    whole = make_job(tmp_path, cases=("1",), protocols=("ospf", "mstcp"), seeds=(1,))
    results, _ = run_invented(whole, InventedEngine(revision="new"), resume=True)
    assert [(run.protocol, run.environment) for run in results.runs] == [("ospf", 0), ("mstcp", 1)]
    assert results.environment.git_revision == "old"
    assert [other.git_revision for other in results.other_environments] == ["new"]
    assert Results.model_validate_json(results.to_json()) == results
    (sentence,) = environment_sentences(results)
    assert sentence == "1 of 2 runs was made with git_revision new instead of old."


def test_a_run_that_is_not_valid_is_rerun_as_often_as_asked(tmp_path: Path) -> None:
    few = {"cases": ("1",), "protocols": ("ospf",), "seeds": (1,)}
    engine = InventedEngine(invalid_attempts=2)
    results, events = run_invented(make_job(tmp_path / "enough", retries=2, **few), engine)
    assert results.environment.valid
    assert results.runs[0].earlier_attempts == [["attempt 1 was too slow"], ["attempt 2 was too slow"]]
    assert [event.reason for event in events if isinstance(event, RunRepeated)] == [
        "attempt 1 was too slow",
        "attempt 2 was too slow",
    ]
    logs = sorted(path.name for path in (tmp_path / "enough" / "logs").iterdir())
    assert logs == ["1-ospf-s1", "1-ospf-s1-attempt2", "1-ospf-s1-attempt3"]
    results, _ = run_invented(
        make_job(tmp_path / "few", retries=1, **few), InventedEngine(invalid_attempts=2)
    )
    assert results.runs[0].why_invalid == ["attempt 2 was too slow"]
    assert len(results.runs[0].earlier_attempts) == 1


def test_finished_runs_are_there_before_the_last_one(tmp_path: Path) -> None:
    class Stopped(InventedEngine):
        def run_case(self, plan: RunPlan, out: Path, report: Report) -> RunResult:
            if len(self.plans) == 3:
                raise KeyboardInterrupt
            return super().run_case(plan, out, report)

    job, engine = make_job(tmp_path), Stopped()
    with pytest.raises(KeyboardInterrupt):
        run_invented(job, engine)
    assert len(runner.collect(job, engine).runs) == 3
    kept = (job.out / "runs" / "001.json").read_bytes()
    # Seed 2 was not valid: it is rerun beside those that are missing.
    another = InventedEngine()
    execute(job, another, lambda _: None)
    assert [plan.slug for plan in another.plans][:3] == ["1-ospf-s2", "1-mstcp-s2", "2-ospf-s1"]
    assert len(another.plans) == 6
    results = runner.collect(job, another)
    assert len(results.runs) == 8
    assert results.runs[1].earlier_attempts == [["it was invented"]]
    assert (job.out / "runs" / "001.json").read_bytes() == kept


def test_wrong_and_missing_bytes_are_failures() -> None:
    plan = make_job(Path("unused")).plans()[0]
    wrong = runner.check_transfers([invented(plan, wrong_bytes=7)])
    assert wrong[0].startswith("Flow 1 of case 1 with ospf, seed 1, failed: 7 bytes arrived other than")
    missing = runner.check_transfers([invented(plan, missing_bytes=1)])
    assert len(missing) == 2
    assert "1000 bytes were sent and 999 arrived" in missing[0]


def test_output_folders_that_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(OutputError, match="Choose another folder with --out"):
        runner.prepare_output(occupied)
    runner.prepare_output(tmp_path / "used")
    (tmp_path / "used" / "results.json").write_text("{}")
    with pytest.raises(OutputError, match="results of other runs already"):
        runner.prepare_output(tmp_path / "used")

    def full(path: Path) -> os.statvfs_result:
        values = list(os.statvfs(tmp_path))
        return os.statvfs_result([values[0], 4096, 10**6, 100, 100, *values[5:]])

    real = os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda path: full(path) if "other" in str(path) else real(path))
    with pytest.raises(OutputError, match="only 0 MB are free"):
        runner.prepare_output(tmp_path / "other" / "place")
    assert not (tmp_path / "other").exists(), "a refusal leaves nothing behind"


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    def write_half(path: Path) -> None:
        with atomic_file(path) as partial:
            partial.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    for path in (tmp_path / "new.csv", tmp_path / "old.csv"):
        if path.name == "old.csv":
            path.write_text("as before")
        with pytest.raises(OSError, match="No space left"):
            write_half(path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old.csv", "as before")]


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    write_output(tmp_path / "a.json", "x")
    assert (tmp_path / "a.json").read_text() == "x"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.json"]
    with pytest.raises(OutputError, match="No such file"):
        write_output(tmp_path / "missing" / "a.json", "x")


def test_runs_of_one_second_have_default_folders_of_their_own(tmp_path: Path) -> None:
    folders = [runner.default_output("butterfly", 0.0, tmp_path / "results") for _ in range(3)]
    name = "butterfly-19700101T000000Z"
    assert [folder.name for folder in folders] == [name, f"{name}-2", f"{name}-3"]
    assert all(folder.is_dir() for folder in folders)


def test_a_default_folder_that_cannot_be_made_is_left_to_who_writes_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert runner.default_output("butterfly", 0.0, tmp_path / "file").parent == tmp_path / "file"


def test_a_refused_run_leaves_no_empty_folder(tmp_path: Path) -> None:
    out = runner.default_output("butterfly", 0.0, tmp_path)
    with pytest.raises(MissingRequirement, match="ppfs-group"):
        runner.run(make_job(out, engine="sim", protocols=("ppfs-group",)), lambda event: None)
    assert not out.exists()


def test_an_unknown_engine_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no engine called 'virtul'"):
        runner.run(make_job(tmp_path, engine="virtul"), lambda event: None)
