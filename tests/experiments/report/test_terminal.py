"""The terminal table: width, ASCII, the document's numbers, hostile names."""

from __future__ import annotations

import io

from rich.console import Console

from experiments.report.terminal import print_table
from tests.fakes.results import make_results, printed


def test_it_fits_120_columns_and_is_ascii_without_a_terminal() -> None:
    text = printed(make_results(("ospf", "mstcp", "ppfs", "mptcp"), seeds=3), width=80)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 120
    assert "+-" in text


def test_on_a_terminal_it_fits_that_and_at_most_120_columns() -> None:
    for width, limit in ((200, 120), (70, 70)):
        text = printed(make_results(seeds=2), terminal=True, width=width)
        assert max(map(len, text.splitlines())) <= limit


def test_rows_hold_the_documents_numbers_and_the_papers() -> None:
    results = make_results(("mstcp",), ("1",))
    flow = results.runs[0].flows[0]
    assert flow.delay_s is not None
    line = next(line for line in printed(results).splitlines() if " mstcp " in line)
    cells = [cell.strip() for cell in line.split("|")]
    assert cells == [
        "1",
        "mstcp",
        "8.50",
        f"{flow.goodput_bps / 1e6:.2f}",
        f"{flow.goodput_bps / 8.5e6 * 100:.2f}",
        f"{flow.delay_s.mean * 1e3:.2f}",
        f"{flow.delay_s.p95 * 1e3:.2f}",
        "8.50",
        "17.56",
    ]


def test_without_a_paper_there_are_no_columns_for_it() -> None:
    assert "paper" not in printed(make_results(scenario="my-network"))


def test_missing_values_and_reasons() -> None:
    results = make_results(("ospf",), ("1",))
    results.runs[0].flows[0].delay_s = None
    text = printed(results)
    assert "- a" in text
    assert "a: nothing arrived, so there is no delay" in text


def test_names_are_neither_markup_nor_control_characters() -> None:
    text = printed(make_results(("[red]\x1b[31mé",), ("1",)), terminal=True)
    assert "[red]?[31mé" in text
    assert "\x1b[31m" not in text
    assert printed(make_results(("é",), ("1",))).isascii()


def test_invalid_runs_are_named() -> None:
    results = make_results(("ospf",), ("1",))
    results.runs[0].valid, results.runs[0].why_invalid = False, ["98 % busy"]
    assert "ospf, case 1, seed 1 is not valid: 98 % busy." in printed(results)


def test_the_consoles_width_is_as_before() -> None:
    console = Console(file=io.StringIO(), width=80)
    print_table(make_results(("ospf",), ("1",)), console)
    assert console.width == 80
