from hypothesis import given
from hypothesis import strategies as st
from os_ken.lib.packet import icmpv6, ipv6
from os_ken.lib.packet.packet import Packet

from controller.model import ndp
from controller.model.neighbour import PROBER_MAC, NeighbourMessage
from tests.fakes.neighbour_frames import advertisement, solicitation

MAC, OTHER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
OWN, ITS = "fd00::1", "fd00::2"
ASKED = solicitation(MAC, OWN, ITS)
_HOP_LIMIT_AT, _TYPE_AT, _CHECKSUM_AT, _OPTION_LENGTH_AT = 21, 54, 56, 79


def test_questions_and_answers_are_read() -> None:
    question = NeighbourMessage(True, MAC, OWN, ITS)
    assert ndp.parse(ASKED) == question
    assert ndp.parse(ASKED + bytes(6)) == question, "Ethernet pads short frames"
    probe = ndp.parse(solicitation(MAC, "::", ITS))
    assert probe == NeighbourMessage(True, MAC, "::", ITS)
    assert probe.is_probe
    assert ndp.parse(advertisement(MAC, ITS, OWN)) == NeighbourMessage(False, MAC, ITS, OWN)
    defence = ndp.parse(advertisement(MAC, ITS))
    assert defence == NeighbourMessage(False, MAC, ITS, "::")
    assert defence.answers_probe


def test_what_no_host_may_believe_is_none() -> None:
    def changed(at: int, value: int) -> bytes:
        return ASKED[:at] + bytes([value]) + ASKED[at + 1 :]

    wrong = {"over a router": _HOP_LIMIT_AT, "another message": _TYPE_AT, "no checksum": _CHECKSUM_AT}
    for what, at in wrong.items():
        assert ndp.parse(changed(at, 1)) is None, what
    assert ndp.parse(changed(_OPTION_LENGTH_AT, 0)) is None, "an option without length"
    assert all(ndp.parse(ASKED[:end]) is None for end in range(len(ASKED)))
    assert ndp.parse(solicitation(MAC, "::", ITS, destination="fd00::9")) is None, "a probe goes to a group"


def test_the_answer_is_solicited_overrides_and_is_of_no_router() -> None:
    request = ndp.parse(ASKED)
    assert request is not None
    frame = ndp.build_reply(request, OTHER_MAC)
    assert frame[:12].hex(":") == f"{MAC}:{OTHER_MAC}"
    packet = Packet(frame)
    head, message = packet.get_protocol(ipv6.ipv6), packet.get_protocol(icmpv6.icmpv6)
    assert (head.src, head.dst, head.hop_limit) == (ITS, OWN, 255)
    assert (message.type_, message.data.res, message.data.dst) == (icmpv6.ND_NEIGHBOR_ADVERT, 0b011, ITS)
    assert message.data.option.hw_src == OTHER_MAC
    assert ndp.parse(frame) == NeighbourMessage(False, OTHER_MAC, ITS, OWN)


def test_the_controllers_questions_disturb_no_duplicate_address_detection() -> None:
    for mac in (None, OTHER_MAC):
        frame = ndp.build_probe(ITS, mac)
        assert ndp.parse(frame) == NeighbourMessage(True, PROBER_MAC, ndp.PROBER_IP, ITS)
        assert frame[:6].hex(":") == (mac or "33:33:ff:00:00:02")


@given(st.binary(max_size=120))
def test_no_bytes_are_an_error(data: bytes) -> None:
    ndp.parse(data)
    ndp.parse(ASKED[:54] + data)
