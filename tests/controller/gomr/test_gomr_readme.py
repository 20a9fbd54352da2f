"""The numbers of controller/gomr/README.md and docs/gomr.md are what GOMR computes."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import controller.gomr
from controller.gomr import Demand, Edge, Problem, solve
from tests.controller.gomr.gomr_oracles import check_allocation, rates

README = Path(controller.gomr.__file__).with_name("README.md")
GUIDE = README.parents[2] / "docs" / "gomr.md"

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
    rows = re.findall(r"^\| (\w?) ?\| (\S.*?) \| (\d+) \| (\d+) \|$", README.read_text(), re.MULTILINE)
    assert len(rows) == 5
    return [(flow, what, float(steep), float(even)) for flow, what, steep, even in rows]


@pytest.mark.parametrize(("column", "objective"), [(2, "max_throughput_min_delay"), (3, "even_split")])
def test_worked_example(column: int, objective: str) -> None:
    allocation = solve(CONGESTED, objective)
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


def test_the_long_flow_starves() -> None:
    edges = (Edge("XY", "X", "Y", 10e6, 1e-3), Edge("YZ", "Y", "Z", 10e6, 1e-3))
    demands = (Demand("XY", "X", "Y", 10e6), Demand("YZ", "Y", "Z", 10e6), Demand("XZ", "X", "Z", 10e6))
    for objective in ("max_throughput_min_delay", "even_split"):
        allocation = solve(Problem(edges, demands), objective)
        assert [allocation.rate_bps(demand.id) for demand in demands] == pytest.approx([10e6, 10e6, 0])


def test_the_guides_example_prints_what_it_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    said = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().splitlines() == said
