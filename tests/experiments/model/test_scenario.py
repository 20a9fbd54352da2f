"""Scenario files against their schema."""

from __future__ import annotations

from pathlib import Path

import pytest

import topologies
from experiments.errors import ScenarioError, UnknownName
from experiments.model import scenario, settings
from experiments.model.scenario import check_network

MINIMAL = """
format = 1
name = "small"
network = "line:2"
[cases.a.flows.1]
src = "h1"
dst = "h2"
requested_bps = 1e6
"""


def parse_text(tmp_path: Path, text: str) -> scenario.Scenario:
    path = tmp_path / "small.toml"
    path.write_text(text)
    return scenario.load(str(path))


def test_butterfly_asks_for_what_the_paper_does() -> None:
    butterfly = scenario.load("butterfly")
    assert butterfly.packet_bytes == 590
    assert butterfly.mtu_bytes == 576
    assert butterfly.overhead_bytes == 54
    assert butterfly.packet_bytes - butterfly.overhead_bytes == 536
    second = butterfly.case("2")
    assert second.flows["1"].requested_for("mstcp") == 8.95e6
    assert second.flows["1"].requested_for("ospf") == 9.08e6
    assert second.flows["2"].requested_for("anything") == 31.80e6


def test_butterfly_fits_its_network() -> None:
    butterfly = scenario.load("butterfly")
    network = topologies.load(butterfly.network, variant=butterfly.variant)
    check_network(butterfly, list(butterfly.cases), network)


@pytest.mark.parametrize("case", ["1", "2"])
@pytest.mark.parametrize(("protocol", "payload"), [("mstcp", 528), ("ppfs", 536)])
def test_paper_allocation_fits_into_the_links(case: str, protocol: str, payload: int) -> None:
    butterfly = scenario.load("butterfly")
    network = topologies.load(butterfly.network, variant=butterfly.variant)
    capacity = {(arc.tail, arc.head): arc.rate_bps for arc in network.arcs()}
    load = dict.fromkeys(capacity, 0.0)
    for flow in butterfly.case(case).flows.values():
        paths = flow.given_paths("paper", protocol)
        for given in paths:
            # One path is plain TCP, without identifier.
            useful = payload if len(paths) > 1 else 536
            for hop in zip(given.path, given.path[1:], strict=False):
                load[hop] += given.rate_bps * 590 / useful
    # The paper rounds its rates to 10 kbit/s.
    assert all(load[hop] <= capacity[hop] + 10e3 * 590 / 528 for hop in capacity)


def test_ipv6_has_longer_headers_and_no_captures_of_the_simulator() -> None:
    data = scenario.load("butterfly").model_dump() | {"ip_version": 6}
    assert scenario.parse(data, "x").overhead_bytes == 74
    with pytest.raises(ScenarioError, match=r"sim\.trace: the simulator's captures are of IPv4"):
        scenario.parse(data | {"sim": {"trace": ["pcap"]}}, "x")


def test_overhead_follows_the_timestamps() -> None:
    data = scenario.load("butterfly").model_dump()
    data["tcp"]["timestamps"] = True
    assert scenario.parse(data, "x").overhead_bytes == 66
    data["tcp"]["timestamps"] = None
    assert scenario.parse(data, "x").overhead_bytes == 66


def test_sysctls_are_those_asked_for() -> None:
    assert settings.Tcp(sack=False, recovery=0).sysctls() == {
        "net.ipv4.tcp_sack": "0",
        "net.ipv4.tcp_recovery": "0",
    }
    assert settings.Tcp().sysctls() == {}


@pytest.mark.parametrize(
    ("change", "place", "reason"),
    [
        (("requested_bps = 1e6", "requested_bps = -1"), "cases.a.flows.1.requested_bps", "greater than 0"),
        (("requested_bps = 1e6", "requested_bps = nan"), "cases.a.flows.1.requested_bps", "finite"),
        (("requested_bps = 1e6", "requested = 1e6"), "cases.a.flows.1.requested_bps", "must be given"),
        (("requested_bps = 1e6", "requested_bps = { mstcp = 1e6 }"), "cases.a.flows.1", "needs a `default`"),
        (('dst = "h2"', 'dst = "h1"'), "cases.a.flows.1", "two hosts"),
        (("format = 1", "format = 2"), "format", "1"),
        (('name = "small"', 'name = "small"\ncolour = "red"'), "colour", "no such key"),
        (('name = "small"', 'name = "small"\npacket_bytes = 20'), "packet_bytes", "at least 200"),
        (
            ("[cases.a.flows.1]", '[cases.a]\nallocation = "best"\n[cases.a.flows.1]'),
            "cases.a",
            "'best' is not given",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, change: tuple[str, str], place: str, reason: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_text(tmp_path, MINIMAL.replace(*change))
    assert caught.value.place == place
    assert reason in str(caught.value)
    assert "small.toml" in str(caught.value)


def test_given_path_leads_from_src_to_dst(tmp_path: Path) -> None:
    given = '\n[cases.a.flows.1.given.mine]\ndefault = [{ path = ["h1", "s1", "h3"], rate_bps = 1e6 }]\n'
    with pytest.raises(ScenarioError, match="h1-s1-h3 does not lead from h1 to h2"):
        parse_text(tmp_path, MINIMAL + given)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean butterfly"):
        scenario.load("buterfly")
    with pytest.raises(ScenarioError, match="cannot be read"):
        scenario.load(str(tmp_path / "missing.toml"))
    with pytest.raises(ScenarioError, match="is not TOML"):
        parse_text(tmp_path, "format = = 1")
    with pytest.raises(UnknownName, match="Known: 1, 2"):
        scenario.load("butterfly").case("3")


def test_flows_end_at_hosts() -> None:
    butterfly = scenario.load("butterfly")
    with pytest.raises(ScenarioError, match=r"cases\.1\.flows\.1\.src: the network has no host 'T0'"):
        check_network(butterfly, ["1"], topologies.load("ring:4"))
