"""`mstcp-lab reproduce table1`: rows beside the paper's and ns-3's, the page, and the plot's arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import cli
from experiments.model.results import Results
from experiments.report.plot_delay_time import joined
from experiments.report.reference import load_reference
from experiments.report.reproduction import load_ns3, reproduce
from experiments.report.reproduction_text import signed_percent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduction") / "out"
    assert cli.main(["reproduce", "table1", "--out", str(out), "--seeds", "2", "--duration", "20"]) == 0
    return out


def test_ns3_has_a_row_for_each_of_the_papers() -> None:
    paper = {(row.case, row.flow, row.protocol) for row in load_reference().row}
    for variant in ("a", "b"):
        rows = [row for row in load_ns3().row if row.variant == variant]
        assert len(rows) == len(paper)
        assert {(row.case, row.flow, row.protocol) for row in rows} == paper
    for row in load_ns3().row:
        if row.delay_range_s:
            assert row.delay_range_s[0] <= row.delay_mean_s <= row.delay_range_s[1]


def test_the_table_is_reproduced(folder: Path) -> None:
    """In 20 s queues that walk at random have not settled: delays of full links are left to longer runs."""
    reproduction = reproduce({variant: Results.read(folder / variant / "results.json") for variant in "ab"})
    assert reproduction.seeds == 2
    assert not reproduction.is_the_papers
    for variant, rows in reproduction.rows.items():
        assert len(rows) == len(load_reference().row)
        for row in rows:
            if row.name == "2.2 ppfs":  # needs longer to settle
                continue
            assert abs(row.goodput_difference) < 0.02, (variant, row.name)
            if row.paper.protocol == "ospf" or row.name == "1.1 ppfs":
                assert row.delay_difference is not None
                assert abs(row.delay_difference) < 0.05, (variant, row.name)
            assert row.flow.requested_bps == pytest.approx(row.paper.requested_bps)
            given = [path.rate_bps for path in row.paper.paths]
            if row.paper.protocol != "ospf":
                assert [path.rate_bps for path in row.flow.allocated] == given
    mstcp = reproduction.rows["b"][0].delay_mean_s
    assert mstcp is not None
    assert 0.0145 < mstcp.mean < 0.0205


def test_page_markdown_and_plots_are_written(folder: Path) -> None:
    page = (folder / "table1.html").read_text()
    assert page.count("data-protocol=") == 24
    assert "<svg" in page
    text = (folder / "table1.md").read_text()
    assert "| 1.1 | mstcp | 8.50 | 8.50 |" in text
    assert "(12.2 to 12.7)" in text
    for variant in "ab":
        for ending, magic in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
            plot = folder / "plots" / f"delay-over-time-{variant}.{ending}"
            assert plot.read_bytes().startswith(magic)


def test_joined_intervals_keep_the_mean(folder: Path) -> None:
    reproduction = reproduce({"a": Results.read(folder / "a" / "results.json")})
    for row in reproduction.rows["a"]:
        times_s, delays_ms = joined(row)
        assert delays_ms.shape == (2, times_s.size)
        assert np.all(np.diff(times_s) > 0)
        for seed, result in enumerate(row.flow.results):
            assert result.delay_s is not None
            assert delays_ms[seed].mean() / 1e3 == pytest.approx(result.delay_s.mean, rel=0.15)


def test_results_that_are_there_are_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", "table1", "--out", str(folder)]) == 1
    assert "holds the results of other runs already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["table2"], "There is no study called 'table2'. Did you mean table1?"),
        (["table1", "--seeds", "0"], "--seeds: 0 is not between 1 and 1000"),
        (["table1", "--duration", "-3"], "--duration: must be greater than 0"),
        (["kato-cc", "--seeds", "0"], "--seeds: 0 is not between 1 and 1000"),
        (["kato-cc", "--duration", "-3"], "--duration: must be greater than 0"),
        (["kato-cc", "--resume"], "--resume"),
    ],
)
def test_wrong_arguments(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_differences_have_a_sign() -> None:
    assert [signed_percent(value) for value in (0.0213, -0.004, None)] == ["+2.1", "-0.4", "\N{EN DASH}"]
