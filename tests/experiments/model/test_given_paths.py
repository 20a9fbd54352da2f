"""Paths that a scenario gives: refused where no packet could take them, by a sentence that says why."""

from __future__ import annotations

import pytest

import topologies
from experiments.errors import ScenarioError
from experiments.model import scenario
from experiments.model.given_paths import check_given_paths
from experiments.model.scenario import Scenario


def with_path(*nodes: str) -> Scenario:
    data = scenario.load("butterfly").model_dump(mode="json")
    data["cases"]["1"]["flows"]["1"]["given"]["paper"]["default"] = [{"path": list(nodes), "rate_bps": 1e6}]
    return scenario.parse(data, "mine.toml")


@pytest.mark.parametrize("name", sorted(scenario.available()))
def test_those_of_the_built_in_scenarios_fit_their_networks(name: str) -> None:
    loaded = scenario.load(name)
    check_given_paths(loaded, list(loaded.cases), topologies.load(loaded.network, variant=loaded.variant))


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (("T0", "S0", "S5", "T2"), "no link leads from S0 to S5"),
        (("T0", "S0", "S2", "S0", "S4", "T2"), "it passes S0 twice"),
        (("T0", "S0", "T0", "S0", "S4", "T2"), "it passes T0 twice|through the host T0"),
    ],
)
def test_others_are_refused(nodes: tuple[str, ...], reason: str) -> None:
    network = topologies.load("butterfly", variant="a")
    with pytest.raises(ScenarioError, match=reason) as refused:
        check_given_paths(with_path(*nodes), ["1"], network)
    assert "cases.1.flows.1.given.paper.default.0.path" in str(refused.value)


def test_no_path_leads_through_a_host() -> None:
    network = topologies.load("butterfly", variant="a")
    with_a_host_between = network.model_copy(
        update={
            "links": (
                *network.links,
                network.links[0].model_copy(update={"ends": ("S0", "T3")}),
                network.links[0].model_copy(update={"ends": ("S4", "T3")}),
            )
        }
    )
    with pytest.raises(ScenarioError, match="it leads through the host T3, which does not forward"):
        check_given_paths(with_path("T0", "S0", "T3", "S4", "T2"), ["1"], with_a_host_between)
