"""Links that get another rate, delay or state while they carry flows."""

from dataclasses import replace
from typing import Any

import pytest

import topologies
from controller.errors import NotFound, PreconditionFailed
from controller.model.events import ConfigurationChanged, LinkChanged
from controller.model.requests import LinkChange
from controller.model.settings import Settings
from tests.fakes.openflow_table import ControlledNetwork
from tests.fakes.requests import FIRST as FLOW

SETTINGS = Settings(lease_s=1e6)


@pytest.fixture
def net() -> ControlledNetwork:
    return ControlledNetwork.brought_up(topologies.load("butterfly"), SETTINGS)


def change(net: ControlledNetwork, link: str, **what: Any) -> Any:
    (answer,) = net.handle(LinkChanged(1, link, LinkChange(**what)))
    for _ in range(40):
        net.pass_time(0.1)
        assert_within_capacity(net)
    return answer.result


def assert_within_capacity(net: ControlledNetwork) -> None:
    for link in net.snapshot().links:
        assert link.allocated_bps <= link.capacity_bps * (1 + 1e-3), link


def test_flows_follow_a_rate_down_and_up(net: ControlledNetwork) -> None:
    net.request(**FLOW)
    (there, back) = change(net, "S0-S4", rate_bps=2e6)
    assert (there.link, there.capacity_bps, back.capacity_bps, there.revision) == ("S0->S4", 2e6, 2e6, 1)
    (flow,) = net.snapshot().flows
    assert 6e6 < flow.rate_bps < 7e6
    change(net, "S4-S0", rate_bps=5e6)
    (flow,) = net.snapshot().flows
    assert flow.rate_bps == pytest.approx(8.5e6)


def test_rates_given_by_hand_are_scaled_to_what_is_left(net: ControlledNetwork) -> None:
    paths = ({"nodes": ("T0", "S0", "S4", "T2"), "rate_bps": 4e6},)
    net.request(**FLOW | {"rate_bps": 4e6, "paths": paths})
    change(net, "S0-S4", rate_bps=1e6)
    assert net.snapshot().flows[0].rate_bps < 1e6
    change(net, "S0-S4", rate_bps=5e6)
    assert net.snapshot().flows[0].rate_bps == pytest.approx(4e6)


def test_a_link_that_may_not_be_used_carries_nothing(net: ControlledNetwork) -> None:
    net.request(**FLOW)
    change(net, "S0-S4", enabled=False)
    assert {link.link for link in net.snapshot().links if not link.up} == {"S0->S4", "S4->S0"}
    (flow,) = net.snapshot().flows
    assert all(("S0", "S4") not in zip(s.path, s.path[1:], strict=False) for s in flow.streams if s.rate_bps)
    change(net, "S0-S4", enabled=True)
    assert net.snapshot().health.ready
    assert net.snapshot().flows[0].rate_bps == pytest.approx(8.5e6)


def test_another_delay_is_another_optimum(net: ControlledNetwork) -> None:
    before = net.request(**FLOW | {"rate_bps": 1e6})
    net.release(before.flow_id)
    change(net, "S0-S4", delay_s=0.5)
    after = net.request(**FLOW | {"rate_bps": 1e6})
    assert before.streams[0].path == ("T0", "S0", "S4", "T2")
    assert after.streams[0].path == ("T0", "S0", "S2", "S3", "S4", "T2")
    solved = net.request(**FLOW | {"rate_bps": 1e6, "streams": 2, "destination_port": 5002})
    assert {stream.delay_s for stream in solved.streams} >= {0.005}


def test_a_change_survives_a_restart(net: ControlledNetwork) -> None:
    change(net, "S0-S4", rate_bps=2e6, delay_s=0.25)
    net.restart()
    link = next(link for link in net.snapshot().links if link.link == "S4->S0")
    assert (link.capacity_bps, link.delay_s) == (2e6, 0.25)


def test_an_unknown_link_and_a_stale_revision(net: ControlledNetwork) -> None:
    assert isinstance(change(net, "S0-S9", enabled=False), NotFound)
    (answer,) = net.handle(LinkChanged(1, "S0-S4", LinkChange(enabled=False), if_revisions=frozenset({7})))
    assert isinstance(answer.result, PreconditionFailed)


def test_a_configuration_is_applied_whole_or_not_at_all(net: ControlledNetwork) -> None:
    wanted = replace(SETTINGS, reserved_share=0.5, lease_s=9.0)
    bad = {"S0-S4": LinkChange(rate_bps=1e6), "S0-S9": LinkChange(rate_bps=1e6)}
    (answer,) = net.handle(ConfigurationChanged(1, wanted, bad))
    assert isinstance(answer.result, NotFound)
    assert net.request(**FLOW).lease_s == 1e6
    net.request(**FLOW | {"destination_port": 5002, "source": "T1", "destination": "T3", "rate_bps": 20e6})
    (answer,) = net.handle(ConfigurationChanged(1, wanted, {"S0-S4": LinkChange(rate_bps=4e6)}))
    assert answer.result is None
    for link in net.snapshot().links:
        assert link.allocated_bps <= 0.5 * link.capacity_bps * (1 + 1e-3), link
    elsewhere = {"source": "T3", "destination": "T1", "rate_bps": 1e3}
    assert net.request(**FLOW | elsewhere).lease_s == 9.0
