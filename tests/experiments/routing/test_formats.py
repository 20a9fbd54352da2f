"""Demands and matrices in every format: what is read, and the sentence for each mistake."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gomr import Demand

from experiments.errors import ScenarioError
from experiments.routing.formats.pickled import NotAnArray, load_array
from experiments.routing.formats.reading import Context
from experiments.routing.formats.registry import read_demands
from tests.paths import DATA
from topologies.routable import NodeNames, load_routable

NODES = ("a", "b", "c")
CONTEXT = Context(NodeNames(NODES), NODES)
MATRIX = np.array([[9.0, 2.0, 0.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]])
ASKED = {("a", "b"): 2.0, ("b", "c"): 3.0, ("c", "a"): 4.0}


def asked(path: Path, context: Context = CONTEXT) -> dict[tuple[str, str], float]:
    demands = read_demands(path, context).demands
    assert len({demand.id for demand in demands}) == len(demands)
    return {(demand.source, demand.destination): demand.rate_bps for demand in demands}


def saved(array: np.ndarray[Any, Any], **more: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, matrix=array, **more)
    return buffer.getvalue()


def npy(array: np.ndarray[Any, Any], *, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


ORDER = [2, 0, 1]
"""The same matrix with its nodes as c, a, b."""
TURNED = MATRIX[np.ix_(ORDER, ORDER)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", b"source,destination,rate_bps\na,b,2\nb,c,3\nc,a,4\n"),
        ("x.csv", b"src;dst;demand\na;b;2\nb;c;3 bit/s\nc;a;0.004kbps\n"),
        ("x.csv", b"9,2,0\n0,0,3\n4,0,0\n"),
        ("x.tsv", b"9 2 0\n0 0 3\n\n# the last\n4 0 0\n"),
        ("x.csv", b",c,a,b\nc,0,4,0\na,0,9,2\nb,3,,0\n"),
        ("x.json", b'[{"source": "a", "target": "b", "rate_bps": 2}, {"from": "b", "to": "c", "rate": "3"},'
                   b' {"src": "c", "dst": "a", "rate": 4}]'),
        ("x.json", b'{"demands": [{"source": "a", "target": "b", "rate_bps": 2},'
                   b'{"source": "b", "target": "c", "rate_bps": 3}, {"src": "c", "dst": "a", "bw": 4}]}'),
        ("x.json", b'{"a": {"b": 2}, "b": {"c": "3bit/s"}, "c": {"a": 4.0}}'),
        ("x.json", b"[[9, 2, 0], [0, 0, 3], [4, 0, 0]]"),
        ("x.json", json.dumps({"nodes": ["c", "a", "b"], "matrix": TURNED.tolist()}).encode()),
        ("x.npy", npy(MATRIX)),
        ("x.npy", npy(MATRIX.astype(np.int32))),
        ("x.npz", saved(MATRIX)),
        ("x.npz", saved(TURNED, nodes=np.array(["c", "a", "b"]))),
        ("x.pkl", pickle.dumps(MATRIX)),
    ],
)  # fmt: skip
def test_the_same_matrix_in_every_format(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert asked(path) == ASKED


def test_a_matrix_of_teal_for_its_network() -> None:
    """Row and column are the numbers of the nodes, not their order in the network's file."""
    routable = load_routable(DATA / "teal" / "B4.json")
    matrix = pickle.loads((DATA / "teal" / "B4_real_0.pkl").read_bytes())
    read = asked(DATA / "teal" / "B4_real_0.pkl", Context(routable.nodes, routable.network.switches))
    expected = {(f"n{i}", f"n{j}"): rate for (i, j), rate in np.ndenumerate(matrix) if i != j and rate > 0}
    assert read == pytest.approx(expected)
    assert len(read) == 132


@pytest.mark.parametrize("name", ["poland.txt", "poland.xml"])
def test_demands_of_sndlib(name: str) -> None:
    routable = load_routable(DATA / "formats" / name)
    read = read_demands(DATA / "formats" / name, Context(routable.nodes, routable.network.switches))
    assert read.demands == (Demand("D1", "Gdansk", "Krakow", 195.5e6), Demand("D2", "Krakow", "Warsaw", 60e6))


def test_demands_of_repetita() -> None:
    routable = load_routable(DATA / "formats" / "cities.graph")
    context = Context(routable.nodes, routable.network.switches, None, routable.rate_unit_bps)
    read = read_demands(DATA / "formats" / "cities.demands", context)
    assert read.demands[0] == Demand("demand_0", "Paris", "Lyon", 300632e3)
    assert len(read.demands) == 3


def test_what_is_assumed_and_left_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(MATRIX))
    assert read_demands(path, CONTEXT).notes == (
        "rates without a unit are read as bit/s (--rate-unit says otherwise)",
        "3 entries of 0 are no demands",
        "1 entries from a node to itself are left out",
    )


def test_rates_without_a_unit_for_a_network_with_one_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(npy(MATRIX))
    names = NodeNames(NODES)
    with pytest.raises(ScenarioError, match="--rate-unit, or scale them by --load"):
        read_demands(path, Context(names, NODES, None, 1e6))
    assert asked(path, Context(names, NODES, 1e6, 1e6))["a", "b"] == 2e6
    assert asked(path, Context(names, NODES, None, 1e6, is_scaled=True)) == ASKED


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.csv", "1,2\n3,4\n", "the matrix has 2 rows; the network has 3 nodes"),
        ("x.csv", "0,1,2\n0,0\n1,1,0\n", "line 2: has 2 rates, the matrix 3 columns"),
        ("x.csv", "0,1,2\n0,0,-1\n1,1,0\n", "line 2, column 3: must be a finite number of at least 0"),
        ("x.csv", "0,1,2\n0,0,1.7e308\n1,1,0\n", "is beyond 1e+18: check the unit"),
        ("x.csv", ",a,b\na,0,1\nc,1,0\n", "rows and columns of a matrix have to name the same nodes"),
        ("x.csv", ",a,b\na,0,1\na,1,0\n", "line 3: there is already a row for a"),
        ("x.csv", ",a,x\na,0,1\nx,1,0\n", "line 1: flows cannot begin or end at 'x'"),
        ("x.csv", "0,0,0\n0,0,0\n0,0,0\n", "asks for nothing between two nodes"),
        ("x.csv", "source,destination,rate_bps\na,b,1.7e308\n", "line 2: rate_bps: 1.7e+308 bit/s is beyond"),
        ("x.csv", "source,destination,rate_bps\na,b,1e999\n", "line 2: rate_bps: must be a finite number"),
        ("x.csv", "source,destination,rate,demand\na,b,1,2\n", "a column twice"),
        ("x.json", "[", "is not JSON"),
        ("x.json", "3", "has to be a list of demands"),
        ("x.json", '[{"source": "a", "destination": "b"}]', "[0]: the header lacks rate_bps"),
        ("x.json", '[{"source": "a", "destination": "b", "rate_bps": true}]', "True is not a number"),
        ("x.json", '{"a": 3}', "a: has to be an object of rates by destination"),
        ("x.json", '[[0, 1], [1]]', "is square"),
        ("x.json", '{"nodes": ["a", "a"], "matrix": [[0, 1], [1, 0]]}', "nodes: has to be an array of nodes"),
        ("x.demands", "DEMANDS 1\nlabel src dest bw\nd 0 b\n", "line 3: has 3 words where DEMANDS have 4"),
        ("x.dat", "a\0b", "is in no format of demands that is known"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(name: str, content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ScenarioError) as caught:
        read_demands(tmp_path / name, CONTEXT)
    assert sentence in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (npy(np.array([[{}]], dtype=object), allow_pickle=True), "holds Python objects, which are not read"),
        (npy(np.zeros((4, 3, 3))), "holds 4 matrices; save one of them"),
        (npy(np.array([["x"]])), "not numbers"),
        (npy(np.full((3, 3), np.nan)), "row 1, column 1: nan is no rate"),
        (npy(np.zeros(3)), "a traffic matrix is square"),
        (saved(MATRIX, other=MATRIX), "holds 2 arrays (matrix, other)"),
        (saved(MATRIX, nodes=np.array(["a", "a", "b"])), "nodes: names a node twice"),
        (b"\x93NUMPY\x01", "is not an array of numbers that NumPy saved"),
    ],
)  # fmt: skip
def test_an_array_that_is_no_matrix_is_named(content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        read_demands(tmp_path / "x.npz", CONTEXT)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u2", ">f8", ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_pickled_array_is_the_one_that_was_pickled(protocol: int, dtype: str, order: Any) -> None:
    array = np.asarray(np.arange(12).reshape(3, 4), dtype=dtype, order=order)
    loaded = load_array(pickle.dumps(array, protocol))
    assert loaded.dtype == array.dtype
    assert np.array_equal(loaded, array)


class Attack:
    """Runs a command when Python's own unpickler reads it."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_that_a_pickle_asks_for_is_run(protocol: int, tmp_path: Path) -> None:
    """Python's own unpickler would make the file; this one names what was asked for."""
    made = tmp_path / "made"
    content = pickle.dumps(Attack(Path.touch, made), protocol)
    with pytest.raises(NotAnArray):
        load_array(content)
    assert not made.exists()
    in_array = np.empty((1, 1), dtype=object)
    in_array[0, 0] = Attack(Path.touch, made)
    with pytest.raises(NotAnArray):
        load_array(pickle.dumps(in_array, protocol))
    assert not made.exists()
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(Attack(eval, "1 + 1"), protocol))
    with pytest.raises(ScenarioError, match=r"wants to call .*eval, which is not done"):
        read_demands(path, CONTEXT)


@pytest.mark.parametrize("value", [3, [[1.0]], {"a": 1}, "text", None, np.float64(3), np.array(["a"])])
def test_a_pickle_of_anything_else_is_named(value: Any) -> None:
    with pytest.raises(NotAnArray):
        load_array(pickle.dumps(value))


def test_a_damaged_pickle_is_an_error_whatever_is_broken() -> None:
    content = pickle.dumps(MATRIX)
    for cut in range(len(content)):
        with pytest.raises(NotAnArray):
            load_array(content[:cut])
    positions = [position or 0 for _, _, position in pickletools.genops(content)]
    for position in positions:
        for byte in (0, 0x52, 0x62, 0x63, 0x93, 0xFF):
            damaged = content[:position] + bytes([byte]) + content[position + 1 :]
            with contextlib.suppress(NotAnArray):
                assert load_array(damaged).dtype.kind in "fiu"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "source,destination,rate_bps\nMalmö,b,2\nb,c,3\nc,Malmö,4\n"),
        ("x.tsv", "\tMalmö\tb\tc\nMalmö\t9\t2\t0\nb\t0\t0\t3\nc\t4\t0\t0\n"),
        ("x.txt", "?SNDlib native format\nMETA (\n unit = GBITPERSEC\n)\nNODES ( Malmö b c )\n"
         "DEMANDS ( 1 ( Malmö b ) 1 2e-9 UNLIMITED 2 ( b c ) 1 3e-9 UNLIMITED "
         "3 ( c Malmö ) 1 4e-9 UNLIMITED )"),
        ("x.xml", '<?xml version="1.0" encoding="{}"?><network><networkStructure><nodes><node id="Malmö"/>'
         '<node id="b"/><node id="c"/></nodes></networkStructure>'
         '<meta><unit>MBITPERSEC</unit></meta><demands>'
         "<demand id='0'><source>Malmö</source><target>b</target><demandValue>2e-6</demandValue></demand>"
         "<demand id='1'><source>b</source><target>c</target><demandValue>3e-6</demandValue></demand>"
         "<demand id='2'><source>c</source><target>Malmö</target><demandValue>4e-6</demandValue></demand>"
         "</demands></network>"),
        ("x.hosts", "9 2 0 0 0 3 4 0 0\r\n"),
    ],
)  # fmt: skip
def test_encodings_do_not_matter(tmp_path: Path, name: str, text: str, encoding: str) -> None:
    path = tmp_path / name
    declared = {"utf-8-sig": "UTF-8", "latin-1": "ISO-8859-1"}.get(encoding, encoding.upper())
    path.write_bytes(text.replace("{}", declared).encode(encoding))
    nodes = ("Malmö", "b", "c")
    found = asked(path, Context(NodeNames(nodes), nodes))
    assert found == pytest.approx({("Malmö", "b"): 2.0, ("b", "c"): 3.0, ("c", "Malmö"): 4.0})
