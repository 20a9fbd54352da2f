"""Demands in a file: what is read, and the sentence for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from gomr import Demand

from experiments.errors import ScenarioError
from experiments.routing.formats import csv_text
from experiments.routing.formats.reading import Context, ReadDemands
from experiments.routing.formats.registry import read_demands
from topologies.routable import NodeNames

HEAD = "source,destination,rate_bps"
NODES = ("Atlanta", "Seattle", "Denver")
CONTEXT = Context(NodeNames(NODES), NODES)


def parsed(text: str) -> ReadDemands:
    return csv_text.parse(text, "x.csv", CONTEXT)


def test_columns_come_in_any_order_and_empty_cells_are_defaults() -> None:
    text = """\
# made by hand
rate_bps, destination, source, max_paths, id, disjoint

2e9,Atlanta,Seattle,,,
1e6,Denver,Atlanta,2,mine,edges
"""
    assert parsed(text).demands == (
        Demand("f1", "Seattle", "Atlanta", 2e9),
        Demand("mine", "Atlanta", "Denver", 1e6, max_paths=2, disjoint="edges"),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "x.csv: line 1: the header lacks source, destination, rate_bps"),
        ("source,destination\n", "x.csv: line 1: the header lacks rate_bps"),
        ("source,destination,speed\n", "x.csv: line 1: 'speed' is no column; columns are source,"),
        ("source,source,destination,rate_bps\n", "names a column twice"),
        (HEAD + "\n", "x.csv: holds no flow"),
        (HEAD + "\n#\nSeatle,Atlanta,1\n", "line 3: source: flows cannot begin or end at 'Seatle'; did you"),
        (HEAD + "\nSeattle,Atlanta\n", "line 2: has 2 cells, the header 3"),
        (HEAD + "\nSeattle,Atlanta,fast\n", "line 2: rate_bps: 'fast' is not a number"),
        (HEAD + "\nSeattle,Atlanta,nan\n", "line 2: rate_bps: must be a finite number"),
        (HEAD + "\nSeattle,Atlanta,-1\n", "line 2: rate_bps: must be a finite number"),
        (HEAD + "\nSeattle,Atlanta,\n", "line 2: rate_bps: '' is not a number"),
        (HEAD + ",max_paths\nSeattle,Atlanta,1,1.5\n", "max_paths: '1.5' is not a whole number"),
        (HEAD + ",disjoint\nSeattle,Atlanta,1,both\n", "disjoint: must be 'edges' or 'nodes'"),
        (HEAD + ",id\nSeattle,Atlanta,1,a\nAtlanta,Denver,1,a\n", "line 3: there is already a flow"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parsed(text)
    assert sentence in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gravty: cannot be read: No such file.*give gravity, uniform"):
        read_demands(Path("gravty"), CONTEXT)
    (tmp_path / "x.csv").write_bytes(b"\xff\x00")
    with pytest.raises(ScenarioError, match="it is not text"):
        read_demands(tmp_path / "x.csv", CONTEXT)
