"""Networks extended by second interfaces."""

from __future__ import annotations

import pytest

import topologies
from topologies.errors import InvalidTopology
from topologies.second_interfaces import SecondLink, second_name, with_second_interfaces

LINKS = {"T0": SecondLink("S2", 80e6, 1000), "T2": SecondLink("S3", 40e6, 500)}


def test_numbers_of_the_rest_stay() -> None:
    before = topologies.load("butterfly")
    after = with_second_interfaces(before, LINKS)
    assert after.hosts == (*before.hosts, "T0_2", "T2_2")
    assert [after.host_ip(host) for host in before.hosts] == [before.host_ip(host) for host in before.hosts]
    assert [after.datapath_id(name) for name in after.switches] == [
        before.datapath_id(name) for name in before.switches
    ]
    arcs = list(before.arcs())
    assert list(after.arcs())[: len(arcs)] == arcs


def test_second_interfaces_lead_where_they_are_told() -> None:
    network = with_second_interfaces(topologies.load("butterfly"), LINKS)
    assert network.host_ip(second_name("T0")) == "10.0.0.5"
    link = network.link("T2_2-S3")
    assert (link.rate_bps, link.delay_us) == (40e6, 500)


def test_a_switch_that_does_not_exist_is_named() -> None:
    with pytest.raises(InvalidTopology, match="there is no node S9"):
        with_second_interfaces(topologies.load("butterfly"), {"T0": SecondLink("S9", 80e6, 1000)})
