"""`mstcp-lab demo`: which engine it takes, and what it does where the machine turns out too slow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import command_line, demo
from experiments.errors import MissingRequirement
from experiments.model.events import RunFinished, RunRepeated
from experiments.model.job import Job
from experiments.probe import LATENESS_MAX_S, NEEDED_LOOPS_PER_S, Probe, probe

FAST = Probe(loops_per_s=2 * NEEDED_LOOPS_PER_S, lateness_s=LATENESS_MAX_S / 10)
SLOW = Probe(loops_per_s=NEEDED_LOOPS_PER_S / 2, lateness_s=LATENESS_MAX_S / 10)
LATE = Probe(loops_per_s=2 * NEEDED_LOOPS_PER_S, lateness_s=2 * LATENESS_MAX_S)


@pytest.fixture(autouse=True)
def _as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)


@pytest.mark.parametrize(
    ("seen", "engine", "why"),
    [
        (FAST, "live", "carries it: .* 200%"),
        (SLOW, "virtual", "would not .* 50%"),
        (LATE, "virtual", "4.0 ms late"),
    ],
)
def test_the_probe_decides(seen: Probe, engine: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "probe", lambda: seen)
    taken, reason = demo.choose("auto")
    assert taken == engine
    assert re.search(why, reason)
    assert demo.choose("live") == ("live", "live, as asked")
    assert demo.choose("virtual")[0] == "virtual"


def test_without_root_or_without_a_kernel_there_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def check(self) -> None:
            raise MissingRequirement("There is no kernel.", "Get one.")

    monkeypatch.setattr(demo, "probe", lambda: SLOW)
    monkeypatch.setattr("experiments.places.of", lambda _: Missing())
    assert demo.choose("auto") == ("live", "live (virtual time cannot be had: There is no kernel. Get one.)")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert demo.choose("auto")[0] == "virtual"


def test_live_runs_that_are_not_valid_are_given_up_for_virtual_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[Job] = []

    def invented(job: Job, *, json: bool, watch: Any = None) -> list[str]:
        begun.append(job)
        for _ in range(3 if job.engine == "live" else 0):
            watch(RunRepeated(run="a run", reason="links were late"))
            watch(RunFinished(run="a run", summary="1 Mbit/s"))
        return []

    monkeypatch.setattr(demo, "run_and_report", invented)
    monkeypatch.setattr(demo, "probe", lambda: FAST)
    monkeypatch.setattr(demo, "TABLE_SEEDS", 1)
    monkeypatch.setattr(demo, "TABLE_DURATION_S", 2.0)
    assert demo.main(demo_arguments(tmp_path / "out")) == 0
    assert [job.engine for job in begun] == ["live", "virtual"]
    assert begun[0].out != begun[1].out
    printed = capsys.readouterr().out
    assert "3 live runs were not valid" in printed
    assert (tmp_path / "out" / "table1" / "study.html").exists()


def demo_arguments(out: Path) -> Any:
    return command_line.make_parser().parse_args(["demo", "--out", str(out)])


def test_a_probe_sees_something() -> None:
    seen = probe()
    assert seen.loops_per_s > 0
    assert seen.lateness_s > 0
