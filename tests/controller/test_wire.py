import math
from itertools import pairwise

import pytest
from gomr import Demand, from_network
from gomr.errors import InvalidProblem
from gomr.solving import allocate
from hypothesis import given
from hypothesis import strategies as st

import topologies
from controller.wire import DEFAULT_ACK_RATIO, Framing, allocatable_bps

PAPER = Framing(packet_bytes=590, segment_overhead_bytes=54)


@pytest.mark.parametrize(
    ("wire_mbps", "streams", "goodput_mbps"),
    [(10, 2, 8.95), (35, 2, 31.32), (10, 1, 9.08), (35, 1, 31.80)],
)
def test_the_papers_goodputs(wire_mbps: float, streams: int, goodput_mbps: float) -> None:
    assert round(PAPER.goodput_bps(wire_mbps * 1e6, streams) / 1e6, 2) == goodput_mbps


def test_the_default_ack_ratio_is_one_ack_for_two_of_the_papers_packets() -> None:
    assert PAPER.ack_ratio() == 54 / (2 * 590)
    assert round(PAPER.ack_ratio(), 4) == DEFAULT_ACK_RATIO
    assert Framing(1514).ack_ratio(ack_bytes=66, packets_per_ack=1) == 66 / 1514


@given(
    goodput_bps=st.floats(1, 1e12),
    streams=st.integers(1, 64),
    packet_bytes=st.integers(143, 9018),
    overhead_bytes=st.integers(54, 134),
)
def test_there_and_back(goodput_bps: float, streams: int, packet_bytes: int, overhead_bytes: int) -> None:
    framing = Framing(packet_bytes, overhead_bytes)
    wire_bps = framing.wire_bps(goodput_bps, streams)
    assert wire_bps > goodput_bps
    assert framing.goodput_bps(wire_bps, streams) == pytest.approx(goodput_bps, rel=1e-12)
    assert framing.wire_bps(goodput_bps, 2) > framing.wire_bps(goodput_bps, 1)


def test_a_packet_without_room_for_data_is_an_error() -> None:
    with pytest.raises(ValueError, match="62 bytes hold no application data beside 62"):
        Framing(packet_bytes=62).wire_per_goodput(2)
    assert Framing(packet_bytes=62).wire_per_goodput(1) == 62 / 8


@given(share=st.floats(0, 0.99), load=st.floats(0.1, 3.0))
def test_a_reserved_share_of_every_link_stays_free(share: float, load: float) -> None:
    network = topologies.load("butterfly")
    demands = [
        Demand("1", "T0", "T2", load * 10e6, ack_ratio=DEFAULT_ACK_RATIO),
        Demand("2", "T1", "T3", load * 35e6, ack_ratio=DEFAULT_ACK_RATIO),
    ]
    allocation = allocate(from_network(network, demands, reserved_share=share))
    whole = from_network(network, demands)
    carried = dict.fromkeys(whole.edges_by_id, 0.0)
    for paths in allocation.paths.values():
        for path in paths:
            for tail, head in pairwise(path.nodes):
                carried[f"{tail}->{head}"] += path.rate_bps
                carried[f"{head}->{tail}"] += path.rate_bps * DEFAULT_ACK_RATIO
    for edge in whole.edges:
        assert carried[edge.id] <= allocatable_bps(edge.capacity_bps, share) * (1 + 1e-9)
    if load > 1:
        assert allocation.max_utilisation == pytest.approx(1.0)


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_a_share_that_cannot_be_reserved_is_named(share: float) -> None:
    with pytest.raises(InvalidProblem, match="reserved_share: must be from 0 to below 1"):
        from_network(topologies.load("butterfly"), (), reserved_share=share)
