"""What a controller or a kernel would refuse is refused before anything is built, in all engines."""

from __future__ import annotations

from typing import Any

import pytest

import topologies
from experiments import engines
from experiments.engines.live import requirements
from experiments.errors import ExperimentError, MissingRequirement, ScenarioError
from experiments.model.plan import RunPlan
from experiments.model.scenario import parse
from tests.experiments.engines.sim.sim_plans import plan_of

ALL = ("live", "virtual", "sim")
KERNELS = ("live", "virtual")


def refusal(engine: str, plan: RunPlan, *others: RunPlan) -> ExperimentError:
    with pytest.raises(ExperimentError) as refused:
        engines.get(engine).check([*others, plan])
    return refused.value


def line_plan(protocol: str, **rates_bps: float) -> RunPlan:
    """Return a run over three switches in a row: what goes all the way meets what goes half of it."""
    ends = {"half": ("h1", "h2"), "rest": ("h2", "h3"), "whole": ("h1", "h3")}
    flows = {
        name: {"src": src, "dst": dst, "requested_bps": rates_bps[name]} for name, (src, dst) in ends.items()
    }
    data: dict[str, Any] = {
        "format": 1,
        "name": "line",
        "network": "line:3",
        "cases": {"1": {"flows": flows}},
    }
    network = topologies.load("line:3")
    return RunPlan(
        scenario=parse(data, "line"),
        network=network,
        case_name="1",
        protocol=protocol,
        seed=1,
        duration_s=1.0,
    )


@pytest.mark.parametrize("engine", ALL)
def test_acknowledgements_along_a_path_that_there_is_not(engine: str) -> None:
    plan = plan_of("ppfs", "1", ppfs__ack_path="reverse:9")
    error = refusal(engine, plan, plan_of("ospf", "1"))
    assert isinstance(error, ScenarioError)
    reason = "'reverse:9' is not a path of this flow; it has reverse:0 to reverse:1"
    assert str(error) == f"butterfly: cases.1: ppfs: ack_path: {reason}"


@pytest.mark.parametrize("protocol", ["mstcp", "mptcp-sdn", "ppfs"])
@pytest.mark.parametrize("engine", KERNELS)
def test_a_flow_for_which_nothing_is_left(engine: str, protocol: str) -> None:
    rate_bps = next(link.rate_bps for link in topologies.load("line:3").links)
    plan = line_plan(protocol, half=2 * rate_bps, rest=2 * rate_bps, whole=1e6)
    error = refusal(engine, plan)
    assert isinstance(error, ScenarioError)
    assert error.place == "cases.1.flows.whole"
    assert f"with {protocol} the allocation leaves nothing for it" in str(error)


def test_what_the_kernel_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = refusal("live", plan_of("ospf", tcp__congestion_control="no_such"))
    assert isinstance(refused, MissingRequirement)
    assert "does not have congestion control no_such. Take one of " in str(refused)
    settings = {"net.ipv4.tcp_available_congestion_control": "cubic reno", "net.mptcp.enabled": "1"}
    monkeypatch.setattr(requirements, "read_sysctl", settings.get)
    assert "net.ipv4.tcp_sack" in str(refusal("live", plan_of("ospf", tcp__sack=True)))
    multipath = line_plan("mptcp-sdn", half=1e6, rest=1e6, whole=1e6)
    assert "does not have net.mptcp.pm_type, which mptcp-sdn needs" in str(refusal("live", multipath))
    settings["net.mptcp.enabled"] = "0"
    assert "does not have net.mptcp.enabled = 1, which mptcp-sdn needs" in str(refusal("live", multipath))
