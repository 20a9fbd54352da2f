"""`mstcp-lab reproduce table1`: figures beside the paper's and ns-3's, and the pages that show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import cli
from experiments.report.reference import load_reference
from experiments.report.study_tables import StudyTable, tables_of
from experiments.studies import schema
from experiments.studies.document import StudyDocument
from tests.fakes.lab import Lab

NS3 = "ns-3 3.37"
SETTLES_LATER = {("ppfs", "scenario 2 flow 2 goodput Mbit/s")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduction") / "out"
    assert cli.main(["reproduce", "table1", "--out", str(out), "--seeds", "2", "--duration", "20"]) == 0
    return out


@pytest.fixture(scope="module")
def table(folder: Path) -> StudyTable:
    document = StudyDocument.model_validate_json((folder / "study.json").read_text())
    (table,) = tables_of(schema.load("table1"), document)
    return table


def test_the_study_prints_what_the_papers_table_does(table: StudyTable) -> None:
    assert len(table.cells) == len(table.others[NS3]) == 2 * len(load_reference().row)
    for row in load_reference().row:
        of_flow = f"scenario {row.case} flow {row.flow}"
        for column, figure in (
            ("goodput Mbit/s", row.goodput_bps * 1e-6),
            ("mean delay ms", row.delay_mean_s * 1e3),
        ):
            assert table.cells[row.protocol, f"{of_flow} {column}"].paper == pytest.approx(figure)


def test_the_table_is_reproduced(table: StudyTable) -> None:
    """In 20 s queues that walk at random have not settled: delays of full links are left to longer runs."""
    for (row, column), cell in table.cells.items():
        ns3 = table.others[NS3][row, column]
        if "goodput" in column and (row, column) not in SETTLES_LATER:
            assert cell.ours == pytest.approx(ns3, rel=0.02), (row, column)
        if "delay" in column and (row == "ospf" or (row == "ppfs" and "scenario 1 flow 1" in column)):
            assert cell.ours == pytest.approx(ns3, rel=0.05), (row, column)


def test_pages_have_the_figures_of_paper_and_ns3(folder: Path) -> None:
    page = (folder / "study.html").read_text()
    assert page.count(f'<th scope="col">{NS3}</th>') == 8
    assert "<svg" in page
    assert "| mstcp | 8.5 | 8.5 | 8." in (folder / "study.md").read_text()


def test_results_that_are_there_are_not_overwritten(folder: Path, lab: Lab) -> None:
    assert "--resume goes on" in lab.refusal("reproduce", "table1", "--out", folder, status=1)


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
def test_wrong_arguments(arguments: list[str], sentence: str, lab: Lab) -> None:
    assert sentence in lab.refusal("reproduce", *arguments)
