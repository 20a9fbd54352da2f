"""The whole controller with real os-ken and real Open vSwitch (see the scenarios beside this file)."""

from typing import Any

import pytest

from tests.controller.openflow import ecmp_scenario, ring_scenario, split_scenario
from tests.sandbox import run_in_sandbox

pytestmark = [pytest.mark.root, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_in_sandbox(ring_scenario.main, str(tmp_path_factory.mktemp("ring")), timeout=280.0)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_in_sandbox(split_scenario.main, str(tmp_path_factory.mktemp("split")), timeout=280.0)


@pytest.fixture(scope="module")
def ecmp(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_in_sandbox(ecmp_scenario.main, str(tmp_path_factory.mktemp("ecmp")), timeout=280.0)


def test_discovery_finds_the_ring_and_default_routes_carry_pings(seen: dict[str, Any]) -> None:
    assert seen["ping"] is True


def test_a_pinned_flow_takes_its_path(seen: dict[str, Any]) -> None:
    assert seen["rules_installed"] == {"A": 1, "B": 1, "C": 0}, "one a direction, where it begins"
    assert seen["bytes_over_pinned_path"] == 100_000
    for switch, packets in seen["pinned_packets"].items():
        assert all(count > 2 for count in packets), switch
    assert seen["packets_by_c"] > 4, "data one way, acknowledgements the other"


def test_clients_see_what_rules_have_counted(seen: dict[str, Any]) -> None:
    assert seen["rules_without_counters"] == []
    for switch, packets in seen["pinned_packets"].items():
        shown = seen["shown_packets"][switch]  # read a moment later
        assert all(late >= early for late, early in zip(sorted(shown), sorted(packets), strict=True))


def test_a_flow_that_sends_more_is_held_to_its_rate(seen: dict[str, Any]) -> None:
    took_s, arrived = seen["policed"]
    allowed = 1e6 * (took_s + ring_scenario.BURST_S) / 8
    assert 0.8 * allowed < arrived < 1.02 * allowed + 16 * 1042, (took_s, arrived)


def test_release_brings_traffic_back_to_the_default_route(seen: dict[str, Any]) -> None:
    assert seen["bytes_over_default_route"] == 100_000


def test_every_loss_is_noticed(seen: dict[str, Any]) -> None:
    for event in ("port_down", "port_up", "silent_loss", "switch_loss"):
        assert f"{event}_noticed_after_s" in seen
    assert "ping_around_the_loss_after_s" in seen


def test_hosts_find_each_other_without_the_controller(seen: dict[str, Any]) -> None:
    assert seen["ping_over_ipv6"] is True
    assert seen["pings_without_controller"] == {"10.0.0.2": True, "fd00::2": True}


def test_it_stops_on_sigterm(seen: dict[str, Any]) -> None:
    assert seen["exit_status"] == 0


def test_stamped_packets_take_the_path_of_their_stamp(split: dict[str, Any]) -> None:
    first, second = split["stamps"]
    assert split["stamped"] == {
        first: {"upper": 200},
        second: {"middle": 200},
        split["own_mac"]: {"upper": 200},
    }, "a packet without a stamp takes path 0"


def test_stamped_packets_arrive_with_the_hosts_own_address(split: dict[str, Any]) -> None:
    assert split["at_t2"] == [[split["own_mac"], 40001, 600]]


def test_acknowledgements_take_their_own_path(split: dict[str, Any]) -> None:
    assert split["acks_into_s0"] == {"S0-S2": 200}, "reverse:1 was asked for"


def test_a_split_flow_works_before_there_is_a_splitter(split: dict[str, Any]) -> None:
    assert split["bytes_before_the_splitter"] == 100_000
    assert split["flow_while_running"] is True


def test_a_group_splits_by_connections(split: dict[str, Any]) -> None:
    assert split["bytes_by_group"] == 100_000
    ((source, ways),) = split["by_group"].items()
    assert source == split["own_mac"]
    assert len(ways) == 1, "all packets of one connection take one path"
    assert "weight:3" in split["group_in_switch"]


def test_new_shares_reach_the_group(split: dict[str, Any]) -> None:
    assert "weight:0" in split["group_before_change"]
    assert split["shares_after_change"] == [0.5, 0.5]
    assert "weight:0" not in split["group_after_change"]
    assert split["bytes_after_change"] == 100_000
    assert split["health"] == "ok"


def test_equal_paths_are_all_used_and_no_connection_is_split(ecmp: dict[str, Any]) -> None:
    assert ecmp["bytes"] == 4 * 32 * 20 * 500, "every echo came back"
    spread = ecmp["spread"]
    for direction in ("there", "back"):
        assert spread[direction].keys() == {"M1", "M2", "M3", "M4"}
        assert sum(spread[direction].values()) == 128
        assert min(spread[direction].values()) >= 10, "a fair hash falls below that once in 100,000 times"
        assert spread[f"{direction}_on_several"] == {}
        assert spread[f"{direction}_least_segments"] >= 20, "it is no matter of single packets"


def test_equal_paths_follow_the_network(ecmp: dict[str, Any]) -> None:
    assert set(ecmp["groups_before"].values()) == {0}, "nobody had sent"
    assert ecmp["groups"] == {"L": 4, "R": 4, "M1": 0, "M2": 0, "M3": 0, "M4": 0}
    assert ecmp["bytes_without_m1"] == 4 * 8 * 5 * 500
    assert ecmp["without_m1"]["there"].keys() <= {"M2", "M3", "M4"}
    assert ecmp["groups_at_the_end"] == ecmp["groups"]
