"""A study's page, Markdown and figures: sentences, tables beside the paper's, the order of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import OutputError
from experiments.report.study_markdown import to_markdown
from experiments.report.study_page import write_studies
from experiments.report.study_tables import tables_of, verdict
from experiments.studies import schema
from experiments.studies.document import RankedColumn, StudyDocument
from experiments.studies.evaluate import evaluate

HOSTILE = "<script>alert('x')</script>"
STUDY = """
format = 1
name = "responses"
title = "Responses to reordering"
source = "Nobody et al. 2014"
assumptions = ["Queues hold 100 packets."]
left_out = ["Table I."]
duration_s = 50.0
base = { links = [] }

[dependences.queues]
assumption = "Queues hold 100 packets."
without = { door = "nopr" }

[[axes]]
name = "method"
levels = [
    { name = "nopr", set = { "tcp.reordering" = "none" } },
    { name = "door", set = { "tcp.reordering" = "door" } },
    { name = "mstcp" },
]

[metrics]
mbps = { of = "flows.f.mptcp.window_rates_bps.*", scale = 1e-6, beside = "goodput_mbps" }
goodput_mbps = { of = "flows.f.goodput_bps", scale = 1e-6 }

[[tables]]
table = "III"
columns = { coupled = "{}: mbps" }
rows.nopr = [4.2]
rows.door = [7.9]
rows.mstcp = ["mstcp: goodput_mbps"]

[[claims]]
claim = "TCP-DOOR carries more | than NoPR."
source = "section III"
by = "mbps"
holds = [{ case = "door", of = "nopr", above = 1 }]
depends_on = "queues"

[[claims]]
claim = "NoPR carries 8 Mbit/s."
source = "section III"
by = "mbps"
holds = [{ case = "nopr", is = "8" }]

[[claims]]
claim = "TCP-DOOR carries twice as much."
source = "section III"
by = "mbps"
holds = [{ case = "door", of = "nopr", is = "2.0" }]

[[claims]]
claim = "Both carry the same."
source = "section IV"
by = "mbps"
contradiction = "Table III has it otherwise"
"""
MBPS = {"nopr": [4.0, 4.2, 4.4], "door": [8.0, 8.1, 8.2], "mstcp": [8.9, 9.0, 9.1]}


def made(text: str = STUDY, seeds: int = 3) -> tuple[schema.Study, StudyDocument]:
    study = schema.parse(text, "responses.toml")
    measured = {(case, metric): MBPS[case][:seeds] for case in MBPS for metric in study.metrics}
    return study, evaluate(study, measured)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study") / "out"
    assert write_studies([made()], 3, out) == out / "study.html"
    return out


def test_tables_have_the_papers_rows_and_columns() -> None:
    (table,) = tables_of(*made())
    assert (table.name, table.rows, table.columns) == ("III", ["nopr", "door", "mstcp"], ["coupled"])
    assert table.headings == {"coupled": "coupled (mbps)"}
    assert table.own_metrics == {"mstcp": ["goodput_mbps"]}
    assert table.ranks["coupled"].paper == ["door", "nopr"]
    assert verdict(table.ranks["coupled"]) == "as in the paper"


def test_an_order_that_differs_is_counted_in_pairs() -> None:
    ranked = RankedColumn(
        table="III",
        column="coupled",
        paper=["a", "b", "c"],
        ours=["b", "a", "c"],
        ranked_alike=False,
        consistent=False,
        pairs_alike=1,
        pairs_contrary=1,
        pairs_open=1,
    )
    assert verdict(ranked) == "1 of 3 pairs alike, 1 contrary, 1 open"
    by_chance = ranked.model_copy(update={"consistent": True})
    assert verdict(by_chance) == "1 of 3 pairs alike, 1 contrary, 1 open; chance could give the paper's"


def test_figures_have_their_interval_and_missing_ones_a_dash() -> None:
    (table,) = tables_of(*made(STUDY.replace("rows.mstcp", "others.ns3.door = [68.114]\nrows.mstcp")))
    assert table.sides == ["paper", "ns3", "ours"]
    assert table.figures("door", "coupled") == ["7.9", "68.11", "8.100 ± 0.248"]
    assert table.figures("mstcp", "coupled") == ["\N{EN DASH}", "\N{EN DASH}", "9.000 ± 0.248"]
    (single,) = tables_of(*made(seeds=1))
    assert single.figures("nopr", "coupled") == ["4.2", "4"]


def test_the_page_has_sentences_tables_orders_and_figures(folder: Path) -> None:
    page = (folder / "study.html").read_text()
    for status in ("reproduced", "not_reproduced", "undecided", "contradictory"):
        assert page.count(f'data-status="{status}"') == 1
    assert "not reproduced</span>" in page
    assert page.count("By goodput_mbps ") == 3
    assert "Depends on: Queues hold 100 packets. Without it not reproduced: nopr 4.200" in page
    assert page.count("data-row=") == 3
    assert "<td>4.2</td><td>4.200 ± 0.497</td>" in page
    assert "door &gt; nopr" in page
    assert "Row mstcp: goodput_mbps." in page
    assert "Queues hold 100 packets." in page
    assert "3 seeds of 50 s" in page
    assert (
        "1 of 4 sentences are reproduced, 1 not, 1 cannot be told; in 1 the paper contradicts itself." in page
    )
    assert "<svg" in page


def test_markdown_says_the_same(folder: Path) -> None:
    text = (folder / "study.md").read_text()
    assert "| | coupled (mbps): paper | coupled (mbps): ours |".replace("| |", "|  |") in text
    assert "| nopr | 4.2 | 4.200 ± 0.497 |" in text
    assert "| mstcp | \N{EN DASH} | 9.000 ± 0.248 |" in text
    assert r"TCP-DOOR carries more \| than NoPR." in text
    assert "| coupled | door > nopr | door > nopr | as in the paper |" in text


def test_each_table_is_a_figure(folder: Path) -> None:
    for ending, magic in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert (folder / "plots" / f"study-responses-iii.{ending}").read_bytes().startswith(magic)


def test_several_studies_stand_on_one_page(tmp_path: Path) -> None:
    write_studies([made(), made(STUDY.replace('"responses"', '"others"'))], 3, tmp_path)
    page = (tmp_path / "study.html").read_text()
    assert page.count("data-study=") == 2
    assert '<a href="#study-others">' in page
    assert (tmp_path / "plots" / "study-others-iii.svg").exists()
    assert (tmp_path / "study.md").read_text().count("\n# Responses to reordering\n") == 1


def test_the_same_documents_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_studies([made()], 3, tmp_path)
    for path in sorted(folder.rglob("*.*")):
        assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_a_study_without_tables_has_its_sentences(tmp_path: Path) -> None:
    text = STUDY[: STUDY.index("[[tables]]")] + STUDY[STUDY.index("[[claims]]") :]
    write_studies([made(text)], 1, tmp_path)
    assert "1 seed of 50 s" in (tmp_path / "study.html").read_text()


def test_names_are_text_and_no_markup(tmp_path: Path) -> None:
    text = STUDY.replace('"III"', f'"{HOSTILE}"').replace("carries 8 Mbit/s", HOSTILE)
    write_studies([made(text)], 3, tmp_path)
    assert HOSTILE not in (tmp_path / "study.html").read_text()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        write_studies([made()], 3, tmp_path / "file")
    assert to_markdown([made()], 3)
