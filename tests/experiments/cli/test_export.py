"""Results as tables: every number of the document once, in rows that can be joined."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from experiments.analysis.tables import COLUMNS, tables
from tests.fakes.lab import Lab
from tests.fakes.results import make_results


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results.json").write_text(make_results(("ospf", "mstcp"), seeds=2).to_json())
    return tmp_path


def test_csv_has_the_documents_numbers(folder: Path, lab: Lab) -> None:
    results = make_results(("ospf", "mstcp"), seeds=2)
    assert "8 tables" in lab("export", folder, "--csv", folder / "csv")
    rows = read(folder / "csv" / "flows.csv")
    assert len(rows) == sum(len(run.flows) for run in results.runs)
    flows = {(run.case, run.protocol, run.seed, f.flow): f for run in results.runs for f in run.flows}
    for row in rows:
        flow = flows[row["case"], row["protocol"], int(row["seed"]), row["flow"]]
        assert float(row["goodput_bps"]) == flow.goodput_bps
        assert float(row["delay_p99_s"]) == (flow.delay_s.p99 if flow.delay_s else math.nan)
        assert row["paths"].split(" ") == [">".join(path.path) for path in flow.allocated]
        assert row["completion_s"] == ""  # not measured, so not 0
    series = read(folder / "csv" / "series.csv")
    assert len(series) == sum(len(f.series.time_s) for f in flows.values())
    links = read(folder / "csv" / "links.csv")
    assert [row["link"] for row in links] == [link.link for run in results.runs for link in run.links]
    assert sorted(path.stem for path in (folder / "csv").iterdir()) == sorted(COLUMNS)


def test_parquet_has_the_same_tables(lab: Lab, folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    lab("export", str(folder / "results.json"), "--parquet", str(folder / "pq"))
    for name, table in tables(make_results(("ospf", "mstcp"), seeds=2)).items():
        assert parquet.read_table(folder / "pq" / f"{name}.parquet").to_pydict() == table


def test_a_table_without_rows_has_its_columns() -> None:
    results = make_results(("ospf",))
    for run in results.runs:
        for link in run.links:
            link.series = None
    assert tables(results)["link_series"] == {name: [] for name in COLUMNS["link_series"]}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["."], "name what to write: --csv DIR"),
        (["no-such-folder", "--csv", "x"], "cannot be read: No such file"),
    ],
)
def test_what_cannot_be_exported_is_told(folder: Path, lab: Lab, arguments: list[str], reason: str) -> None:
    assert reason in lab.refusal("export", *arguments)


def test_a_folder_that_cannot_be_written_is_told(folder: Path, lab: Lab) -> None:
    (folder / "file").write_text("")
    assert str(folder / "file") in lab.refusal("export", str(folder), "--csv", str(folder / "file"), status=1)


def test_latex_has_a_row_for_each_flow_and_protocol(lab: Lab, folder: Path) -> None:
    results = make_results(("ospf", "mstcp"), ("1",), seeds=2)
    for run in results.runs:
        run.case = "a_b"
    (folder / "results.json").write_text(results.to_json())
    file = folder / "table.tex"
    lab("export", str(folder), "--latex", str(file), "--measure", "goodput_bps")
    lines = file.read_text().splitlines()
    goodput = [flow.goodput_bps / 1e6 for run in results.runs if run.protocol == "ospf" for flow in run.flows]
    mean = (goodput[0] + goodput[2]) / 2
    assert lines[1] == r"\begin{tabular}{lllr}"
    assert r"case & flow & protocol & goodput in Mbit/s \\" in lines
    assert any(line.startswith(rf"a\_b & 1 & ospf & {mean:.2f} $\pm$ ") for line in lines)
    assert sum("&" in line for line in lines) == 5
    lab.refusal("export", folder, "--latex", file, "--measure", "goodputs")
