"""The pure parts of the builder: names, numbers, and what the kernel and the link emulator are told."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from topologies.check import check_network
from topologies.emulated import direction_counters, shape
from topologies.errors import LinkNotFaithful
from topologies.interface_names import MAX_LENGTH, RESERVED, InterfaceNames
from topologies.management import management_ip
from topologies.mininet_path import find_mininet
from topologies.model import NAME_PATTERN, Link, Network, Node
from topologies.netem import UNLIMITED_PACKETS, netem_difference, netem_limit, netem_options
from topologies.port_numbering import link_parameters
from topologies.wires import End, Wire

names = st.lists(st.from_regex(NAME_PATTERN, fullmatch=True), min_size=2, max_size=12, unique=True)


def star(hosts: list[str], switch: str) -> Network:
    nodes = [Node(name=switch, kind="switch"), *(Node(name=host, kind="host") for host in hosts)]
    links = [Link(ends=(host, switch), rate_bps=1e6, delay_us=0) for host in hosts]
    network = Network(name="star", nodes=tuple(nodes), links=tuple(links))
    check_network(network)
    return network


@given(names)
def test_interface_names_are_unique_and_fit(nodes: list[str]) -> None:
    network = star(nodes[1:], nodes[0])
    given_names = InterfaceNames(network)
    all_names = [given_names.bridge(nodes[0])]
    all_names += [given_names.management(host) for host in network.hosts]
    for index, arc in enumerate(list(network.arcs())[::2]):
        all_names += [given_names.port(arc.tail, arc.tail_port), given_names.port(arc.head, arc.head_port)]
        all_names += given_names.wire(index)
    assert len(set(all_names)) == len(all_names)
    assert max(map(len, all_names)) <= MAX_LENGTH
    assert not RESERVED & set(all_names)


def test_interface_names_are_those_of_mininet_where_they_fit() -> None:
    network = topologies.load("butterfly")
    given_names = InterfaceNames(network)
    assert given_names.bridge("S0") == "S0"
    assert given_names.port("S0", 2) == "S0-eth2"
    assert given_names.port("T0", 1) == "T0-eth0"


@pytest.mark.parametrize("name", ["lo", "mgmt", "a_switch_with_a_long_name"])
def test_bridges_avoid_names_that_are_taken(name: str) -> None:
    bridge = InterfaceNames(star(["h1"], name)).bridge(name)
    assert bridge != name
    assert bridge.startswith(name[:6])


@pytest.mark.parametrize("spec", ["butterfly", "fat-tree:4", "waxman:20:seed=5"])
def test_link_parameters_follow_the_model(spec: str) -> None:
    network = topologies.load(spec)
    parameters = list(link_parameters(network, InterfaceNames(network)))
    assert [entry["link"] for entry in parameters] == list(network.links)
    for entry, arc in zip(parameters, list(network.arcs())[::2], strict=True):
        for node, port, number in (
            (arc.tail, arc.tail_port, entry["port1"]),
            (arc.head, arc.head_port, entry["port2"]),
        ):
            assert number == (port - 1 if node in network.hosts else port)
    macs = [mac for entry in parameters for mac in entry["macs"]]
    assert len(set(macs)) == len(macs)
    assert all(network.host_mac(host) in macs for host in network.hosts)


def test_management_addresses() -> None:
    network = topologies.load("butterfly")
    assert [management_ip(network, host) for host in network.hosts] == [f"10.255.0.{i}" for i in (2, 3, 4, 5)]
    assert management_ip(topologies.load("line:300"), "h300") == "10.255.1.45"


def link(**settings: object) -> Link:
    return Link.model_validate({"ends": ("a", "b"), "rate_bps": 5e6, "delay_us": 1000, **settings})


def test_netem_options_of_a_plain_link() -> None:
    assert netem_options(link(), 590) == ["limit", "10000000", "delay", "1000.000us", "rate", "5000000bit"]


def test_netem_options_of_a_lossy_link() -> None:
    options = " ".join(netem_options(link(queue_packets=20, loss=0.015, jitter_us=100), 590))
    assert options == "limit 22 delay 1000.000us 100.000us loss random 1.5000000% rate 5000000bit"


@given(st.integers(1, 10_000), st.floats(1e3, 1e10), st.floats(0, 1e6))
def test_netem_limit_holds_the_queue_and_the_propagation(
    queue: int, rate_bps: float, delay_us: float
) -> None:
    limit = netem_limit(link(queue_packets=queue, rate_bps=rate_bps, delay_us=delay_us), 1514)
    in_flight = rate_bps * delay_us * 1e-6 / (8 * 1514)
    assert queue + in_flight - 1e-6 <= limit <= queue + in_flight + 1


# As `tc -j qdisc show` of iproute2 6.1 prints `netem limit 22 delay 1ms 100us loss 1.5% rate 5mbit`.
QDISC = {
    "kind": "netem",
    "handle": "1:",
    "root": True,
    "options": {
        "limit": 22,
        "delay": {"delay": 0.001, "jitter": 0.0001, "correlation": 0},
        "loss-random": {"loss": 0.015, "correlation": 0},
        "rate": {"rate": 625000, "packetoverhead": 0, "cellsize": 0, "celloverhead": 0},
        "ecn": False,
        "gap": 0,
    },
}
ASKED = {"queue_packets": 20, "loss": 0.015, "jitter_us": 100}


def test_netem_refuses_a_queue_in_bytes() -> None:
    with pytest.raises(LinkNotFaithful, match="netem bounds no queue in bytes: take the link emulator"):
        netem_options(link(queue_bytes=10_000), 590)


def test_netem_that_is_what_was_asked_for() -> None:
    assert netem_difference(QDISC, link(**ASKED), 590) is None


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"rate_bps": 6e6}, "rate"),
        ({"delay_us": 1100}, "delay (s) 0.001 instead of 0.0011"),
        ({"jitter_us": 0}, "jitter"),
        ({"loss": 0.0}, "loss 0.015 instead of 0"),
        ({"queue_packets": None}, f"limit 22 instead of {UNLIMITED_PACKETS:g}"),
    ],
)
def test_netem_that_is_not_what_was_asked_for(change: dict[str, object], difference: str) -> None:
    reason = netem_difference(QDISC, link(**{**ASKED, **change}), 590)
    assert reason is not None
    assert difference in reason


@given(
    st.floats(0, 5e6),
    st.floats(0, 1e6),
    st.floats(1e3, 100e9),
    st.one_of(st.just(0.0), st.floats(1e-9, 1)),
)
def test_what_tc_prints_of_a_link_is_taken_for_it(
    delay_us: float, jitter_us: float, rate_bps: float, loss: float
) -> None:
    asked = link(delay_us=delay_us, jitter_us=jitter_us, rate_bps=rate_bps, loss=loss)

    def printed_s(time_us: float) -> float:
        ticks = int(int(time_us) * 15.625)
        return float(f"{int(ticks / 15.625) / 1e6:g}")

    shown = {
        "limit": netem_limit(asked, 590),
        "delay": {"delay": printed_s(delay_us), "jitter": printed_s(jitter_us)},
        "loss-random": {"loss": float(f"{int(round(loss, 9) * (2**32 - 1)) / (2**32 - 1):g}")},
        "rate": {"rate": round(rate_bps) // 8},
    }
    assert netem_difference({"kind": "netem", "options": shown}, asked, 590) is None
    later = link(
        delay_us=delay_us * 1.0001 + 5, jitter_us=jitter_us, rate_bps=rate_bps, loss=loss, queue_packets=None
    )
    difference = netem_difference({"kind": "netem", "options": shown}, later, 590)
    assert difference is not None
    assert difference.startswith("delay")


def test_missing_netem_is_noticed() -> None:
    assert netem_difference({"kind": "noqueue"}, link(), 590) == "noqueue instead of netem"


def test_emulator_shapes_differ_in_their_seeds_alone() -> None:
    one, two, other_run = (
        shape(link(loss=0.1), seed, d) for seed, d in ((1, "a_to_b"), (1, "b_to_a"), (2, "a_to_b"))
    )
    assert len({one["seed"], two["seed"], other_run["seed"]}) == 3
    assert {**one, "seed": 0} == {**two, "seed": 0} == {**other_run, "seed": 0}
    assert {**one, "seed": 0} == {
        "rate_bps": 5e6,
        "delay_us": 1000,
        "queue_packets": None,
        "queue_bytes": None,
        "loss": 0.1,
        "jitter_us": 0,
        "seed": 0,
    }


def test_emulator_counters() -> None:
    ends = (End("a", "a-eth0", "02:00:00:00:00:01", None), End("b", "b-eth0", "02:00:00:00:00:02", None))
    entry = {"packets": 3, "bytes": 300, "queued_packets": 1, "queued_bytes": 100}
    entry |= {
        "dropped_queue": 4,
        "dropped_loss": 5,
        "dropped_down": 6,
        "dropped_receive": 7,
        "dropped_send": 8,
    }
    quiet = direction_counters(Wire(link(), ends, ("wa", "wb")), 1, {**entry, "lateness_us": None})
    assert (quiet.tail, quiet.head, quiet.packets, quiet.dropped, quiet.lost) == ("b", "a", 3, 4, 11)
    assert (quiet.dropped_by_machine, quiet.lateness) == (15, None)
    late = {"mean": 1.0, "p50": 0.5, "p99": 9.0, "max": 10.0}
    busy = direction_counters(Wire(link(), ends, ("wa", "wb")), 0, {**entry, "lateness_us": late})
    assert busy.lateness is not None
    assert busy.lateness.p99_us == 9.0


@pytest.mark.skipif(find_mininet() is None, reason="needs mininet")
def test_mininet_becomes_importable_and_nothing_beside_it() -> None:
    from topologies.mininet_path import make_importable

    make_importable()
    make_importable()
    import logging

    import mininet.net

    assert mininet.net.VERSION.startswith("2.")
    assert not [folder for folder in sys.path if folder.endswith("dist-packages")]
    assert logging.getLoggerClass() is logging.Logger
