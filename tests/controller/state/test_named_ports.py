"""Networks that this project did not build: datapath ids, and ports by number, by name, or learned."""

from pathlib import Path
from typing import Any

import pytest

import topologies
from controller.core import Core
from controller.model import arp
from controller.model.events import LinkDiscovered, PacketArrived, SwitchConnected
from controller.model.messages import PacketOut, Report
from controller.model.neighbour import NeighbourMessage
from controller.model.settings import Settings
from controller.state.live_network import LiveNetwork
from tests.fakes.neighbour_frames import arp_frame
from tests.fakes.openflow_table import ControlledNetwork
from topologies.check import check_network, check_numbered
from topologies.errors import InvalidTopology
from topologies.model import Network

ONE, TWO = 0x00E04C680001, 0x00E04C680002


def network(ports: Any = None, **changes: Any) -> Network:
    """h1 - left - right - h2, with two links between the switches by a third."""
    nodes = [
        {"name": "h1", "kind": "host"},
        {"name": "h2", "kind": "host"},
        {"name": "left", "kind": "switch", "datapath_id": ONE},
        {"name": "right", "kind": "switch", "datapath_id": TWO},
    ]
    ends = [("h1", "left"), ("left", "right"), ("right", "h2")]
    links = [
        {"ends": pair, "rate_bps": 1e7, "delay_us": 100, "ports": port}
        for pair, port in zip(ends, ports or [None] * 3, strict=True)
    ]
    made = Network.model_validate({"name": "own", "nodes": nodes, "links": links})
    check_network(made)
    return made


OWN_ADDRESSES = """
format = 1
name = "own"
nodes = [
    { name = "h1", kind = "host", ip = "192.0.2.10", mac = "02:11:22:33:44:55" },
    { name = "h2", kind = "host" },
    { name = "left", kind = "switch" },
]
links = [
    { ends = ["h1", "left"], rate_bps = 1e7, delay_us = 100 },
    { ends = ["h2", "left"], rate_bps = 1e7, delay_us = 100 },
]
"""


def test_hosts_may_have_addresses_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN_ADDRESSES)
    own = topologies.load(file)
    assert (own.host_ip("h1"), own.host_mac("h1")) == ("192.0.2.10", "02:11:22:33:44:55")
    assert own.host_ip("h2") == "10.0.0.2"
    assert Network.model_validate_json(own.model_dump_json()) == own
    net = ControlledNetwork.brought_up(own)
    flow = net.request(source="192.0.2.10", destination="h2", destination_port=80, rate_bps=1e6)
    assert (flow.source, flow.source_ip) == ("h1", "192.0.2.10")
    with pytest.raises(InvalidTopology, match="h1 has an address of its own"):
        check_numbered(own)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('ip = "192.0.2.10"', 'ip = "192.0.2.256"', "no IPv4 address that a host can have"),
        ('ip = "192.0.2.10"', 'ip = "224.0.0.1"', "no IPv4 address that a host can have"),
        ('ip = "192.0.2.10"', 'ip = "10.0.0.2"', "10.0.0.2 is that of h1 too"),
        ('mac = "02:11', 'mac = "01:11', "mac"),
        ('kind = "switch"', 'kind = "switch", ip = "192.0.2.1"', "a switch has no ip"),
    ],
)
def test_addresses_that_make_no_sense(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN_ADDRESSES.replace(right, wrong))
    with pytest.raises(InvalidTopology, match=said):
        topologies.load(file)


def test_numbers_of_the_file() -> None:
    live = LiveNetwork(network([(None, 7), (3, 9), (2, None)]))
    assert (live.datapath_id("left"), live.datapath_id("right")) == (ONE, TWO)
    assert live.ports["left", "h1"] == 7
    assert (live.ports["left", "right"], live.ports["right", "left"]) == (3, 9)


def test_names_of_the_file_and_a_name_that_is_not_there() -> None:
    live = LiveNetwork(network([(None, "eth7"), ("uplink", "downlink"), ("eth1", None)]))
    assert live.name_ports(ONE, {7: "eth7", 12: "uplink", 1: "left"}) == ()
    (missing,) = live.name_ports(TWO, {3: "downlink"})
    assert "right has no port called 'eth1'" in missing
    assert (live.ports["left", "right"], live.ports["right", "left"]) == (12, 3)
    arc = live.arc_at(ONE, 12)
    assert arc is not None
    assert (arc.head, arc.head_port) == ("right", 3)


def test_ports_that_are_called_as_their_neighbours_need_no_entry() -> None:
    live = LiveNetwork(network())
    live.name_ports(ONE, {4: "h1", 5: "left-right"})
    live.name_ports(TWO, {6: "left", 7: "h2"})
    assert [live.ports[pair] for pair in (("left", "h1"), ("left", "right"))] == [4, 5]
    assert [live.ports[pair] for pair in (("right", "left"), ("right", "h2"))] == [6, 7]


def test_links_between_switches_are_learned_from_discovery() -> None:
    core = Core(network([(None, "eth1"), None, ("eth1", None)]), Settings())
    core.handle(SwitchConnected(ONE, frozenset({1, 2}), None, ((1, "eth1"), (2, "eth2"))), 0.0)
    core.handle(SwitchConnected(TWO, frozenset({1, 8}), None, ((1, "eth1"), (8, "eth8"))), 0.0)
    messages = core.handle(LinkDiscovered(ONE, 2, TWO, 8), 0.1)
    assert not [m for m in messages if isinstance(m, Report) and "not in the topology" in m.text]
    messages = core.handle(LinkDiscovered(TWO, 8, ONE, 2), 0.2)
    state, hosts = core._state, core._state.host_views()
    assert state.health().links_down == ()
    assert state.topology().links[1].ports == (2, 8)
    assert [host.port for host in hosts] == [1, 1]
    assert all(host.reachable for host in hosts)
    # Another cable between the same switches is none of the file's.
    messages = core.handle(LinkDiscovered(ONE, 1, TWO, 1), 0.3)
    assert [m for m in messages if isinstance(m, Report) and "not in the topology" in m.text]
    assert not [m for m in messages if isinstance(m, PacketOut) and m.port not in (1, 2, 8)]


@pytest.mark.parametrize(
    ("ports", "said"),
    [
        ([(None, 7), (7, 9), (2, None)], "port 7 of left is that of h1-left too"),
        ([(1, 7), (3, 9), (2, None)], "h1 is a host"),
    ],
)
def test_what_contradicts_itself_is_refused(ports: Any, said: str) -> None:
    with pytest.raises(InvalidTopology, match=said):
        network(ports)


def test_a_network_without_such_names_is_written_as_before() -> None:
    import topologies

    document = topologies.load("butterfly").model_dump_json()
    assert "datapath_id" not in document
    assert "ports" not in document


def test_a_question_for_a_host_whose_address_is_unknown_is_answered_at_once() -> None:
    """It goes to that host alone, and what that host answers goes back: nobody has to ask again."""
    core = Core(network([(None, 1), (2, 2), (1, None)]), Settings())
    for datapath_id in (ONE, TWO):
        core.handle(SwitchConnected(datapath_id, frozenset({1, 2})), 0.0)

    def out(datapath_id: int, frame: bytes) -> list[tuple[int, int, bytes]]:
        messages = core.handle(PacketArrived(datapath_id, 1, frame), 0.1)
        sent = [m for m in messages if isinstance(m, PacketOut) and m.frame[12:14] == b"\x08\x06"]
        return [(m.datapath_id, m.port, m.frame) for m in sent]

    asker, asked = "02:00:00:00:00:01", "02:00:00:00:00:02"
    question = arp_frame(1, asker, "10.0.0.1", "10.0.0.2")
    assert out(ONE, question) == [(TWO, 1, question)]
    forged = arp_frame(2, asker, "10.0.0.1", "10.0.0.2")
    assert out(TWO, forged) == [], "the port is not the host's that it says it is of"
    answer = arp_frame(2, asked, "10.0.0.2", "10.0.0.1")
    assert out(TWO, answer) == [(ONE, 1, answer)]
    ((_, port, reply),) = out(ONE, question)
    assert (port, arp.parse(reply)) == (1, NeighbourMessage(False, asked, "10.0.0.2", "10.0.0.1"))
