"""Files of demands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import DemandError
from experiments.model import demands, scenario
from experiments.model.scenario import Demands, Flow
from experiments.workloads import Bulk, Cbr

HOSTS = ("h1", "h2", "h3")
HEADER = "src,dst,rate_bps,size_bytes,start_s\n"


def read(folder: Path, text: str, name: str = "d.csv", requested_bps: float | None = None) -> dict[str, Flow]:
    path = folder / name
    path.write_text(text)
    return demands.read(path, Demands(file=name, requested_bps=requested_bps), HOSTS)


def test_comments_empty_lines_and_empty_cells_are_passed_over(tmp_path: Path) -> None:
    text = "# two\n" + HEADER + "h1,h2,1e6,,\n\nh2, h3, 2e6, 5e3, 1.5\n"
    first, second = read(tmp_path, text).values()
    assert (first.src, first.dst, first.requested_bps, first.start_s) == ("h1", "h2", 1e6, 0.0)
    assert first.workload == Cbr()
    assert (second.src, second.dst, second.requested_bps, second.start_s) == ("h2", "h3", 2e6, 1.5)
    assert second.workload == Bulk(size_bytes=5000)
    assert first.group == second.group == "demands"


ROW = st.tuples(
    st.sampled_from([("h1", "h2"), ("h3", "h1")]),
    st.floats(1, 1e12),
    st.none() | st.integers(1, 10**9),
    st.floats(0, 86400),
)


@given(st.lists(ROW, min_size=1, max_size=20))
def test_every_row_becomes_a_flow(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple]) -> None:  # type: ignore[type-arg]
    lines = [f"{src},{dst},{rate!r},{size or ''},{start!r}" for (src, dst), rate, size, start in rows]
    flows = read(tmp_path_factory.mktemp("demands"), HEADER + "\n".join(lines))
    assert list(flows) == [f"d{number}" for number in range(1, len(rows) + 1)]
    for flow, ((src, dst), rate, size, start) in zip(flows.values(), rows, strict=True):
        assert (flow.src, flow.dst, flow.requested_bps, flow.start_s) == (src, dst, rate, start)
        assert flow.workload == (Cbr() if size is None else Bulk(size_bytes=size))


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (
            HEADER + "h1,h2,1e6,,\nh1,h9,1e6,,\n",
            "d.csv",
            "line 3: the network has no host 'h9'; its hosts are h1",
        ),
        ("# c\n\n" + HEADER + "h1,h2,fast,,\n", "d.csv", "line 4: rate_bps: must be a number"),
        (HEADER + "h1,h2,1e6\n", "d.csv", "line 2: it has another number of values than the header"),
        (HEADER + "h1,h1,1e6,,\n", "d.csv", "line 2: src and dst are both h1"),
        (HEADER + "h1,h2,,,\n", "d.csv", "line 2: it needs rate_bps, or size_bytes"),
        (HEADER + "h1,h2,,500,\n", "d.csv", "line 2: it needs rate_bps, or size_bytes"),
        (HEADER + "h1,h2,1e6,0.5,\n", "d.csv", "line 2: size_bytes: must be a whole number"),
        (HEADER + "h1,h2,-1,,\n", "d.csv", "line 2: rate_bps: must be greater than 0"),
        (HEADER + "h1,,1,,\n", "d.csv", "line 2: dst: must be given"),
        ("src,dst,rate\nh1,h2,1\n", "d.csv", "line 2: rate: there is no such key. Did you mean rate_bps"),
        ("src,rate_bps\nh1,1\n", "d.csv", "line 2: dst: must be given"),
        (HEADER + 'h1,"h2\n', "d.csv", "is not CSV"),
        ("", "d.csv", "it holds no demand"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, text: str, name: str, message: str) -> None:
    with pytest.raises(DemandError) as caught:
        read(tmp_path, text, name)
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_a_size_alone_takes_the_rate_of_the_scenario(tmp_path: Path) -> None:
    (flow,) = read(tmp_path, "src,dst,size_bytes\nh1,h2,2e6\n", requested_bps=3e6).values()
    assert (flow.requested_bps, flow.workload) == (3e6, Bulk(size_bytes=2_000_000))


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DemandError, match=r"nothing\.csv: cannot be read: No such file"):
        demands.read(tmp_path / "nothing.csv", Demands(file="nothing.csv"), HOSTS)


def test_demands_stand_beside_the_flows_of_their_case(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(HEADER + "h1,h2,1e6,,\n")
    data = {
        "format": 1,
        "name": "n",
        "network": "ring:3",
        "cases": {
            "a": {"demands": "d.csv", "flows": {"own": {"src": "h1", "dst": "h3", "requested_bps": 1e6}}},
            "b": {"demands": {"file": "missing.csv"}},
        },
    }
    loaded = scenario.parse(data, "n.toml")
    expanded = demands.expand(loaded, tmp_path, HOSTS, ["a"])
    assert list(expanded.case("a").flows) == ["own", "d1"]
    assert expanded.case("b") == loaded.case("b")
    # What goes to the worker is the data itself: it needs no file.
    assert scenario.parse(expanded.model_dump(mode="json"), "n.toml") == expanded
