"""Figures of any measure: which values enter, what is asked wrongly, and files that journals take."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from experiments.analysis.samples import Question, SampleSource, measures, select
from experiments.analysis.sources import read_sources
from experiments.analysis.statistics import estimate
from experiments.errors import ScenarioError, UnknownName
from experiments.report.units import axis_unit
from experiments.sweep.plan import Conditions, Point
from experiments.sweep.store import CONDITIONS, POINTS, PointResult
from tests.fakes.lab import Lab
from tests.fakes.results import make_results, settings_with


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two documents that differ in a setting, and a sweep of two loads."""
    root = tmp_path_factory.mktemp("plots")
    for name, sack in (("a", False), ("b", True)):
        (root / name).mkdir()
        text = make_results(("ospf", "mstcp"), seeds=3, settings=settings_with(sack=sack)).to_json()
        (root / name / "results.json").write_text(text)
    sweep = root / "sweep"
    sweep.mkdir()
    (sweep / CONDITIONS).write_text(Conditions(network="ring:4").model_dump_json())
    points = [Point(seed=seed, load=load, protocol="ospf") for load in (0.5, 1.0) for seed in (1, 2)]
    counts = dict.fromkeys(set(PointResult.model_fields) - {"point", "received_bps"}, 1)
    lines = [
        PointResult(point=point, received_bps=point.load * 1e6 + point.seed, **counts).model_dump_json()
        for point in points
    ]
    (sweep / POINTS).write_text("".join(f"{line}\n" for line in lines))
    return root


def sources(folder: Path, *names: str) -> list[SampleSource]:
    return read_sources([folder / name for name in names])[0]


def test_runs_are_the_measurements_and_rows_the_values(folder: Path) -> None:
    where = {"case": ["2"], "protocol": ["mstcp"]}
    (sample,) = select(sources(folder, "a"), Question("goodput_bps", "protocol", where=where))
    results = make_results(("ospf", "mstcp"), seeds=3)
    runs = [run for run in results.runs if (run.case, run.protocol) == ("2", "mstcp")]
    means = [sum(flow.goodput_bps for flow in run.flows) / 2 for run in runs]
    assert sorted(sample.values) == sorted(flow.goodput_bps for run in runs for flow in run.flows)
    assert sample.of_runs == pytest.approx(means)
    assert sample.mean == estimate(sample.of_runs)


def test_a_measure_is_found_in_the_table_that_has_what_it_is_drawn_over(folder: Path) -> None:
    both = sources(folder, "a", "b")
    over_time = select(both, Question("goodput_bps", "protocol", "time_s", {"flow": ["1"]}))
    assert len({sample.at for sample in over_time}) == 80
    by_setting = select(both, Question("goodput_bps", "protocol", "tcp.sack"))
    assert [(sample.group, sample.at) for sample in by_setting] == [
        ("ospf", "False"), ("mstcp", "False"), ("ospf", "True"), ("mstcp", "True"),
    ]  # fmt: skip
    by_link = select(both, Question("utilisation", "link", "links.T0-S0.rate_bps"))
    assert {sample.at for sample in by_link} == {80e6}
    delays = select(both, Question("delay_s", "document"))
    assert all(list(sample.values) != [] for sample in delays)
    assert {"goodput_bps", "delay_s", "utilisation", "capacity_bps"} <= set(measures(both))


def test_a_sweep_is_drawn_over_its_loads(folder: Path) -> None:
    low, high = select(sources(folder, "sweep"), Question("received_bps", "protocol", "load"))
    assert (low.at, low.values, high.at) == (0.5, (500001.0, 500002.0), 1.0)


def test_invalid_runs_are_left_out_and_told(tmp_path: Path) -> None:
    results = make_results(("ospf",), seeds=2)
    results.runs[0].valid, results.runs[0].why_invalid = False, ["it was busy"]
    (tmp_path / "results.json").write_text(results.to_json())
    read, notes = read_sources([tmp_path])
    assert notes == [f"{tmp_path}: 1 runs are not valid and are left out."]
    assert len(read[0].tables["runs"]["seed"]) == len(results.runs) - 1


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (Question("goodput", "protocol"), "no measure called 'goodput'. Did you mean goodput_bps"),
        (Question("goodput_bps", "protocl"), "no column beside goodput_bps called 'protocl'. Did you"),
        (Question("utilisation", "protocol", "flow"), "called 'flow'"),
        (Question("fct_mean_s", "protocol"), "no measure called 'fct_mean_s'"),
    ],
)
def test_a_name_that_is_not_there_is_told_with_the_nearest(
    folder: Path, question: Question, sentence: str
) -> None:
    with pytest.raises(UnknownName, match=sentence):
        select(sources(folder, "a"), question)


def test_nothing_left_by_the_conditions_is_told(folder: Path) -> None:
    with pytest.raises(ScenarioError, match="no run has a value of goodput_bps where case=9"):
        select(sources(folder, "a"), Question("goodput_bps", "protocol", where={"case": ["9"]}))


@pytest.mark.parametrize(
    "options",
    [
        ["--kind", "cdf", "--measure", "delay_s", "--log"],
        ["--kind", "box", "--over", "case"],
        ["--kind", "line", "--over", "time_s", "--where", "flow=1", "--title", "Flow $1"],
    ],
)
def test_the_files_are_the_same_each_time_with_whole_letters(
    lab: Lab, folder: Path, tmp_path: Path, options: list[str]
) -> None:
    for name in ("one", "two"):
        out = [str(tmp_path / f"{name}{suffix}") for suffix in (".pdf", ".svg", ".png")]
        files = [word for path in out for word in ("--out", path)]
        table = str(tmp_path / f"{name}.csv")
        lab("plot", str(folder / "a"), str(folder / "b"), *options, *files, "--csv", table)
    for suffix in ("pdf", "svg", "png", "csv"):
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()
    pdf = (tmp_path / "one.pdf").read_bytes()
    assert b"/CIDFontType2" in pdf or b"/TrueType" in pdf
    assert b"/Type3" not in pdf
    with (tmp_path / "one.csv").open(newline="") as file:
        assert all(float(row["mean"]) > 0 for row in csv.DictReader(file))


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--kind", "line"], 2, "needs --over"),
        (["--kind", "cdf", "--over", "case"], 2, "leave --over out"),
        (["--out", "/nowhere/x.pdf"], 1, "Cannot write the results to /nowhere/x.pdf"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    folder: Path, tmp_path: Path, lab: Lab, arguments: list[str], status: int, sentence: str
) -> None:
    told = lab.refusal("plot", folder / "a", "--out", tmp_path / "x.pdf", *arguments, status=status)
    assert sentence in told


def test_an_ending_that_is_no_figure_is_refused(folder: Path, lab: Lab) -> None:
    assert "does not end in .pdf, .svg or .png" in lab.refusal("plot", str(folder / "a"), "--out", "x.docx")


@pytest.mark.parametrize(
    ("name", "largest", "expected"),
    [
        ("goodput_bps", 8.5e6, (1e-6, "goodput in Mbit/s")),
        ("delay_mean_s", 0.02, (1e3, "delay mean in ms")),
        ("link_delay_us", 0.2, (1.0, "link delay in µs")),
        ("load", 1.5, (1.0, "load")),
    ],
)
def test_axes_have_the_units_that_suit_the_values(
    name: str, largest: float, expected: tuple[float, str]
) -> None:
    scale, label = axis_unit(name, largest)
    assert label == expected[1]
    assert scale == pytest.approx(expected[0])
