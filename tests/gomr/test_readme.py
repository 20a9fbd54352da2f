"""The numbers of crates/gomr-py/gomr/README.md and docs/gomr.md are what GOMR computes."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from pathlib import Path

import gomr
import pytest
from gomr import OBJECTIVES, Demand, Edge, Problem
from gomr.solving import allocate

from tests.gomr.gomr_oracles import check_allocation, rates
from tests.paths import ROOT

README = Path(gomr.__file__).with_name("README.md")
GUIDE = ROOT / "docs" / "gomr.md"

CONGESTED = Problem(
    (
        Edge("SA", "S", "A", 8e6, 1e-3),
        Edge("AB", "A", "B", 5e6, 1e-3),
        Edge("AC", "A", "C", 10e6, 1e-3),
        Edge("CB", "C", "B", 10e6, 2e-3),
    ),
    (Demand("f", "S", "B", 12e6), Demand("g", "C", "B", 6e6)),
)


def worked_example() -> list[tuple[str, str, float, float]]:
    """The rows of the README's table of rates."""
    rows = re.findall(r"^\| (\w?) ?\| (\S[^|]*?) \| (\d+) \| (\d+) \|$", README.read_text(), re.MULTILINE)
    assert len(rows) == 5
    return [(flow, what, float(steep), float(even)) for flow, what, steep, even in rows]


@pytest.mark.parametrize(("column", "objective"), [(2, "max_throughput_min_delay"), (3, "even_split")])
def test_worked_example(column: int, objective: str) -> None:
    allocation = allocate(CONGESTED, objective)
    check_allocation(CONGESTED, allocation)
    expected: dict[str, dict[str, float]] = {"f": {}, "g": {}, "": {}}
    for row in worked_example():
        expected[row[0]][row[1]] = float(row[column])
    for flow in ("f", "g"):
        mbps = {path: rate / 1e6 for path, rate in rates(allocation, flow).items()}
        assert mbps == pytest.approx(expected[flow])
    totals = {"T": allocation.admitted_bps / 1e6, "D (kbit)": allocation.cost_bps_s / 1e3}
    assert totals == pytest.approx(expected[""])
    assert allocation.upper_bound_bps == pytest.approx(14e6)


def test_min_max_utilisation_where_an_edge_is_full_anyway() -> None:
    plain, room = (allocate(CONGESTED, name) for name in ("max_throughput_min_delay", "min_max_utilisation"))
    for flow in ("f", "g"):
        assert rates(room, flow) == pytest.approx(rates(plain, flow))
    assert room.max_utilisation == pytest.approx(1)


def line(rate_bps: float) -> Problem:
    edges = (Edge("XY", "X", "Y", 10e6, 1e-3), Edge("YZ", "Y", "Z", 10e6, 1e-3))
    return Problem(edges, tuple(Demand(f"{a}-{b}", a, b, rate_bps) for a, b in ("XY", "YZ", "XZ")))


def table(first_cell: str) -> list[list[str]]:
    """The rows of the README's table whose header begins with this cell, without the header's rule."""
    lines = README.read_text().splitlines()
    start = next(i for i, text in enumerate(lines) if text.startswith(f"| {first_cell}"))
    rows = itertools.takewhile(lambda text: text.startswith("|"), lines[start:])
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [cells[0], *cells[2:]]


def test_the_line_under_every_objective() -> None:
    header, *rows = table("flow (Mbit/s)")
    assert {name.strip("`") for name in header[1:]} == set(OBJECTIVES)
    for column, name in enumerate(header[1:], start=1):
        allocation = allocate(line(8e6), name.strip("`"))
        check_allocation(line(8e6), allocation)
        rates_mbps = {flow: allocation.rate_bps(flow) / 1e6 for flow in allocation.paths}
        rates_mbps["T"] = allocation.admitted_bps / 1e6
        assert rates_mbps == pytest.approx({row[0]: float(row[column]) for row in rows}), name


def test_the_long_flow_starves() -> None:
    for objective in ("max_throughput_min_delay", "even_split", "min_max_utilisation"):
        allocation = allocate(line(10e6), objective)
        assert [allocation.rate_bps(flow) for flow in ("X-Y", "Y-Z", "X-Z")] == pytest.approx([10e6, 10e6, 0])


def test_room_where_all_fits() -> None:
    ways = (("S", "A", 1e-3), ("A", "D", 1e-3), ("S", "B", 2e-3), ("B", "D", 2e-3))
    edges = tuple(Edge(f"{a}{b}", a, b, 10e6, delay_s) for a, b, delay_s in ways)
    problem = Problem(edges, (Demand("f", "S", "D", 8e6),))
    header, *rows = table("| `max_throughput_min_delay` | `min_max")
    for column, name in enumerate(header[1:], start=1):
        allocation = allocate(problem, name.strip("`"))
        mbps = {path: rate / 1e6 for path, rate in rates(allocation, "f").items()}
        figures = [
            mbps.get("S-A-D", 0.0),
            mbps.get("S-B-D", 0.0),
            allocation.max_utilisation * 100,
            allocation.cost_bps_s / 1e3,
        ]
        assert figures == pytest.approx([float(row[column]) for row in rows]), name


def test_the_guides_examples_print_what_they_say() -> None:
    names: dict[str, object] = {}  # each example goes on from the one before
    for code in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        said = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue().splitlines() == said
