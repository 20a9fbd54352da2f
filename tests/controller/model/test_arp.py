from hypothesis import given
from hypothesis import strategies as st

from controller.model import arp
from controller.model.neighbour import NeighbourMessage
from tests.fakes.neighbour_frames import arp_frame

ASKER_MAC = "02:00:00:00:00:01"


def frame(operation: int = 1) -> bytes:
    return arp_frame(operation, ASKER_MAC, "10.0.0.1", "10.0.0.2")


def test_a_request_is_read() -> None:
    expected = NeighbourMessage(True, ASKER_MAC, "10.0.0.1", "10.0.0.2")
    assert arp.parse(frame()) == expected
    assert arp.parse(frame() + bytes(18)) == expected, "Ethernet pads short frames"


def test_a_reply_is_read() -> None:
    packet = arp.parse(frame(operation=2))
    assert packet is not None
    assert not packet.is_request


def test_what_is_no_arp_is_none() -> None:
    assert arp.parse(frame().replace(b"\x08\x06", b"\x08\x00", 1)) is None
    assert arp.parse(frame(operation=3)) is None
    assert arp.parse(frame()[:41]) is None


def test_the_reply_goes_to_the_asker_and_reads_back() -> None:
    request = arp.parse(frame())
    assert request is not None
    reply = arp.build_reply(request, "02:00:0a:00:00:02")
    assert reply[:6].hex(":") == ASKER_MAC
    assert arp.parse(reply) == NeighbourMessage(False, "02:00:0a:00:00:02", "10.0.0.2", "10.0.0.1")


@given(st.binary(max_size=80))
def test_no_bytes_are_an_error(data: bytes) -> None:
    arp.parse(data)
    arp.parse(frame()[:14] + data)
