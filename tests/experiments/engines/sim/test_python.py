"""`experiments.sim`: scenarios built in Python, results as rows, and the documented example as it stands."""

from __future__ import annotations

import re
from typing import Any

import pytest

from experiments.errors import MissingRequirement, OverrideError, ScenarioError, UnknownName
from experiments.sim import Simulation, make_network
from tests.paths import ROOT
from topologies import TopologyError


def two_paths() -> Simulation:
    links = [("A", "S", 50e6, 500), ("S", "T", 4e6, 1000), ("S", "U", 6e6, 2000), ("U", "T", 6e6, 2000)]
    network = make_network(["A", "B"], [*links, ("T", "B", 50e6, 500)])
    return Simulation(network, settings={"warm_up_s": 2.0})


def test_the_documented_example_runs_as_it_stands() -> None:
    text = (ROOT / "docs" / "simulator.md").read_text()
    example = next(
        code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "Simulation" in code
    )
    namespace: dict[str, Any] = {}
    exec(example, namespace)
    results = namespace["results"]
    assert {(row["protocol"], row["flow"]) for row in results.flows} == {
        (protocol, flow) for protocol in ("mstcp", "ospf") for flow in ("1", "2")
    }


def test_a_network_made_by_hand_carries_what_it_can() -> None:
    study = two_paths().flow("A", "B", rate_bps=8e6)
    results = study.run(["mstcp", "ospf"], seeds=(1, 2), duration_s=5)
    by_protocol = {row["protocol"]: row for row in results.flows}
    assert by_protocol["mstcp"]["goodput_bps"] == pytest.approx(8e6, rel=0.02)
    assert len(by_protocol["mstcp"]["paths"].split()) == 2
    assert by_protocol["mstcp"]["allocated_bps"] == pytest.approx(8e6, rel=1e-3)
    # One path of 4 Mbit/s: 1448 of 1514 bytes are the application's.
    assert by_protocol["ospf"]["goodput_bps"] <= 4e6 * 1448 / 1514 * 1.001
    assert by_protocol["ospf"]["allocated_bps"] is None
    assert [(row["protocol"], row["seed"]) for row in results.flows] == [
        ("mstcp", 1), ("mstcp", 2), ("ospf", 1), ("ospf", 2)
    ]  # fmt: skip
    assert len(results.costs) == 4


def test_rows_are_flat_and_alike() -> None:
    results = two_paths().flow("A", "B", 2e6, name="up").run(["ospf", "mstcp"], duration_s=2)
    for rows in (results.flows, results.links, results.series):
        assert rows
        assert len({tuple(row) for row in rows}) == 1
        assert all(
            value is None or isinstance(value, str | int | float) for row in rows for value in row.values()
        )
    assert {row["link"] for row in results.links} >= {"A->S", "S->A", "T->B"}
    times = [row["time_s"] for row in results.series if row["protocol"] == "ospf"]
    assert times == sorted(times)


def test_settings_apply_to_scenario_and_network() -> None:
    slow = Simulation(
        "butterfly", settings={"links.S0-S4.rate_bps": 1e6, "tcp.sack": False, "sim.sample_s": 0}
    )
    results = slow.flow("T0", "T2", 5e6).run(["ospf"], duration_s=3)
    assert results.flows[0]["goodput_bps"] < 1e6
    assert results.series == []


def test_a_scenario_file_is_the_command_lines() -> None:
    study = Simulation.load("butterfly", "1", settings={"allocation": "paper"})
    results = study.run(["mstcp"], duration_s=2)
    assert [row["allocated_bps"] for row in results.flows] == [8.5e6, 4.5e6]
    with pytest.raises(ValueError, match="scenario file"):
        study.flow("T0", "T2", 1e6)


def test_the_number_of_workers_changes_nothing() -> None:
    study = two_paths().flow("A", "B", rate_bps=8e6)
    one, four = (study.run(["mstcp"], seeds=range(4), duration_s=1, workers=workers) for workers in (1, 4))
    assert one.runs == four.runs


def test_mistakes_are_said() -> None:
    with pytest.raises(TopologyError):
        Simulation("butterflies")
    with pytest.raises(OverrideError, match="sack"):
        Simulation("butterfly", settings={"tcp.sak": True}).flow("T0", "T2", 1e6).run()
    with pytest.raises(ScenarioError, match="no host 'T9'"):
        Simulation("butterfly").flow("T0", "T9", 1e6).run()
    with pytest.raises(ScenarioError, match="needs flows"):
        Simulation("butterfly").run()
    with pytest.raises(ValueError, match="already"):
        Simulation("butterfly").flow("T0", "T2", 1e6, name="x").flow("T1", "T3", 1e6, name="x")
    with pytest.raises(MissingRequirement, match="ppfs-group"):
        Simulation("butterfly").flow("T0", "T2", 1e6).run(["ppfs-group"])
    with pytest.raises(ScenarioError, match="needs a second link of T0, T2"):
        Simulation("butterfly").flow("T0", "T2", 1e6).run(["mptcp-dualhomed"])
    with pytest.raises(UnknownName):
        Simulation.load("butterfly", "7")
    with pytest.raises(ScenarioError, match="at least one segment"):
        settings = {"packet_bytes": 9000, "tcp.send_buffer_bytes": 4096}
        Simulation("butterfly", settings=settings).flow("T0", "T2", 1e6).run()
