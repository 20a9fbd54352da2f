"""The runs that are compared with ns-3: the same draws as the simulator's, and tables of what came."""

from __future__ import annotations

import json

import netsim_native
import pytest

from benchmarks.ns3.cases import losses, queues
from benchmarks.ns3.descriptions import UnsupportedDescriptionError, lines, splitmix64
from benchmarks.ns3.outcomes import Outcome
from benchmarks.ns3.tables import queue_lines
from benchmarks.ns3.wired import runs, table_lines


def test_draws_are_the_simulators() -> None:
    """The first number of the generator's reference sequence (crates/mstcp-proto/src/rng.rs)."""
    assert splitmix64(1_234_567) == 6_457_827_717_110_365_317


def test_every_run_is_one_that_both_simulators_take() -> None:
    for run in [*queues(1), *losses(1), *runs(1)]:
        netsim_native.check(json.dumps(run.description))
        kinds = [line.split()[0] for line in lines(run.description)]
        paths = sum(len(flow["paths"]) for flow in run.description["flows"])
        assert kinds.count("path") == paths
        assert kinds.count("link") == len(run.description["links"])


def test_what_ns3_is_not_set_up_for_is_refused() -> None:
    description = next(queues(1)).description | {"packet_overhead_bytes": 34}
    with pytest.raises(UnsupportedDescriptionError, match="22 bytes"):
        list(lines(description))


def test_what_ns3_prints_becomes_a_table() -> None:
    stream = "stream 1 100 7 5 3 1 4.5e+06\n"
    outcome = Outcome.of_ns3(f"flow 1 8.5e+06 0.175 10 0\n{stream * 2}flow 2 3e+07 0.042 10 0\n{stream * 2}")
    assert Outcome.read(outcome.document()) == outcome
    table = list(queue_lines([(outcome, outcome)]))
    assert "| flow 2, mean delay, ms | 42.0 | 42.0 |" in table
    assert "| flow 2's stream on S2-S3, recoveries | 3 | 3 |" in table


def test_rows_of_one_wire_have_names_of_their_own_and_ns3s_controls() -> None:
    made = list(runs(1))
    assert len({run.case for run in made}) == len(made)
    controls = {line.split()[-1] for run in made for line in lines(run.description) if "SocketType" in line}
    assert controls == {"ns3::TcpNewReno", "ns3::TcpCubic", "ns3::TcpBbr"}


def test_a_row_has_means_and_their_ratio() -> None:
    pair = tuple(
        Outcome.of_ns3(f"flow 1 1e6 0.1 10 0\nstream 1 100 {again} 0 1 0 {rate}\n")
        for again, rate in ((4, 1e6), (6, 1.1e6))
    )
    assert list(table_lines({"1 ms": [(pair[0], pair[1])]}))[-1] == "| 1 ms | 1.000 | 1.100 | 1.100 | 4 | 6 |"
