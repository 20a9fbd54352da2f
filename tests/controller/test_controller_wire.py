import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire import DEFAULT_ACK_RATIO, Framing

PAPER = Framing(packet_bytes=590, segment_overhead_bytes=54)


@pytest.mark.parametrize(
    ("wire_mbps", "streams", "goodput_mbps"),
    [(10, 2, 8.95), (35, 2, 31.32), (10, 1, 9.08), (35, 1, 31.80)],
)
def test_the_papers_goodputs(wire_mbps: float, streams: int, goodput_mbps: float) -> None:
    assert round(PAPER.goodput_bps(wire_mbps * 1e6, streams) / 1e6, 2) == goodput_mbps


def test_the_default_ack_ratio_is_one_ack_for_two_of_the_papers_packets() -> None:
    assert round(54 / (2 * 590), 4) == DEFAULT_ACK_RATIO


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
