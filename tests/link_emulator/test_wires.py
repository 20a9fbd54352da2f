"""Real wires between real interfaces, in a network namespace that vanishes with the test.

A wire's ends are `ra` and `rb`; their veth peers `ea` and `eb` are where the tests send and receive. Bounds
are those that follow from the link's definition; none depends on how fast the machine is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.waiting import wait_until
from topologies.link_emulator import EmulatorDiedError, LinkEmulator, RequestRefusedError, find_binary

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

ETHERTYPE = 0x88B5  # for local experiments (IEEE 802)
HEADER = bytes.fromhex("020000000002020000000001")
CLONE_NEWNET = 0x40000000
IPV6_SWITCH = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
# From the kernel's if_packet.h, if_ether.h and virtio_net.h.
SOL_PACKET, PACKET_AUXDATA, PACKET_VNET_HDR, ETH_P_ALL = 263, 8, 15, 3
NEEDS_CHECKSUM, GSO_NONE, GSO_TCPV4 = 1, 0, 1


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def namespace() -> Iterator[None]:
    """Move this thread into a new network namespace with two veth pairs, and back."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(CLONE_NEWNET) != 0:
        os.close(home)
        pytest.skip(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")
    try:
        if IPV6_SWITCH.exists():  # so that nothing but the tests sends frames
            IPV6_SWITCH.write_text("1")
        for side in "ab":
            ip("link", "add", f"r{side}", "type", "veth", "peer", "name", f"e{side}")
            ip("link", "set", f"e{side}", "up")
        yield
    finally:
        assert libc.setns(home, CLONE_NEWNET) == 0
        os.close(home)


@pytest.fixture
def emulator() -> Iterator[LinkEmulator]:
    with LinkEmulator(find_binary()) as emulator:
        yield emulator


class Station:
    """Sends and receives numbered test frames on an interface."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        self._socket.bind((interface, ETHERTYPE))

    def close(self) -> None:
        self._socket.close()

    def send(self, number: int, size_bytes: int = 100) -> None:
        frame = HEADER + struct.pack("!HI", ETHERTYPE, number)
        self._socket.send(frame + bytes(size_bytes - len(frame)))

    def receive(self, timeout_s: float = 10.0) -> tuple[int, int]:
        """Return the number and the size of the next frame."""
        self._socket.settimeout(timeout_s)
        frame = self._socket.recv(4096)
        return struct.unpack_from("!I", frame, 14)[0], len(frame)

    def waiting(self) -> list[int]:
        """Return the numbers of the frames that have arrived."""
        numbers = []
        try:
            while True:
                numbers.append(self.receive(0.001)[0])
        except TimeoutError:
            return numbers


@pytest.fixture
def stations() -> Iterator[tuple[Station, Station]]:
    pair = Station("ea"), Station("eb")
    yield pair
    for station in pair:
        station.close()


def direction(emulator: LinkEmulator, name: str = "a_to_b") -> dict[str, Any]:
    entries = {entry["direction"]: entry for entry in emulator.stats()["directions"]}
    entry: dict[str, Any] = entries[name]
    return entry


def accounted(entry: dict[str, Any]) -> int:
    """Return how many frames the direction has seen, by what became of them."""
    fates = ("packets", "queued_packets", "in_flight_packets")
    drops = ("dropped_queue", "dropped_loss", "dropped_receive", "dropped_down", "dropped_send")
    return sum(entry[key] for key in fates + drops)


def test_no_round_trip_is_shorter_than_the_delays(
    emulator: LinkEmulator, stations: tuple[Station, Station]
) -> None:
    a, b = stations
    emulator.add("w", "ra", "rb", {"delay_us": 2000}, {"delay_us": 3000, "jitter_us": 500})
    for number in range(50):
        start = time.monotonic_ns()
        a.send(number)
        assert b.receive() == (number, 100)
        b.send(number)
        assert a.receive() == (number, 100)
        assert time.monotonic_ns() - start >= 5_000_000
    report = emulator.stats()
    assert [entry["packets"] for entry in report["directions"]] == [50, 50]
    assert report["wires"] == [{"wire": "w", "up": True, "error": None}]
    for entry in report["directions"]:
        late = entry["lateness_us"]
        assert 0 <= late["p50"] <= late["p99"] <= late["max"]
        assert 0 < late["mean"] <= late["max"]
    assert all(entry["lateness_us"] is None for entry in emulator.stats()["directions"])


def test_the_rate_is_not_exceeded_and_the_order_is_kept(
    emulator: LinkEmulator, stations: tuple[Station, Station]
) -> None:
    a, b = stations
    rate_bps, size_bytes, count = 4e6, 500, 200
    emulator.add("w", "ra", "rb", {"rate_bps": rate_bps})
    start = time.monotonic()
    for number in range(count):
        a.send(number, size_bytes)
    for number in range(count):
        assert b.receive() == (number, size_bytes)
        assert (number + 1) * size_bytes * 8 <= rate_bps * (time.monotonic() - start)


def test_what_the_queue_cannot_hold_is_dropped_and_nothing_else(
    emulator: LinkEmulator, stations: tuple[Station, Station]
) -> None:
    a, b = stations
    # A frame takes 10 s to transmit: the first is in service, five wait, the rest find the queue full.
    emulator.add("w", "ra", "rb", {"rate_bps": 800, "queue_packets": 5})
    for number in range(20):
        a.send(number, 1000)
    wait_until(lambda: accounted(direction(emulator)) == 20, "all frames")
    entry = direction(emulator)
    assert (entry["queued_packets"], entry["queued_bytes"]) == (5, 5000)
    assert (entry["in_flight_packets"], entry["dropped_queue"], entry["packets"]) == (1, 14, 0)
    emulator.set("w", {"queue_packets": None, "queue_bytes": 6500})
    a.send(20, 1000)
    a.send(21, 1000)
    wait_until(lambda: accounted(direction(emulator)) == 22, "the last frames")
    assert direction(emulator)["queued_bytes"] == 6000
    assert b.waiting() == []


def test_a_wire_over_wifi_takes_airtime_and_can_only_go_down_and_up(
    emulator: LinkEmulator, stations: tuple[Station, Station]
) -> None:
    a, b = stations
    link = {"standard": "802.11g", "distance_m": 5, "phy_rate_bps": 6e6, "fading_near_shape": 1e6}
    wifi = {"stations": ["A", "B"], "seed": 1, "link": link}
    emulator.add("w", "ra", "rb", wifi=wifi)
    start = time.monotonic()
    for number in range(40):
        (a if number % 2 else b).send(number, 1500)
    for number in range(20):
        assert (a.receive(), b.receive()) == ((2 * number, 1500), (2 * number + 1, 1500))
        # Of the frames that have come in either direction: 36 bytes of 802.11 in place of 14 of Ethernet.
        assert (2 * number + 1) * 1522 * 8 <= 6e6 * (time.monotonic() - start)
    with pytest.raises(RequestRefusedError, match="is a wire over Wi-Fi, which can only go down and up"):
        emulator.set("w", {"loss": 0.1})
    emulator.set("w", up=False)
    a.send(40)
    wait_until(lambda: direction(emulator)["dropped_down"] == 1, "the drop")
    with pytest.raises(RequestRefusedError, match=r"wifi.link.phy_rate_bps.*802.11g has no rate of 7 Mbit/s"):
        emulator.add("x", "ea", "eb", wifi={**wifi, "link": {**link, "phy_rate_bps": 7e6}})


def test_a_link_that_goes_down_loses_what_is_on_it(
    emulator: LinkEmulator, stations: tuple[Station, Station]
) -> None:
    a, b = stations
    emulator.add("w", "ra", "rb", {"delay_us": 10e6})
    a.send(0)
    wait_until(lambda: direction(emulator)["in_flight_packets"] == 1, "a frame on its way")
    emulator.set("w", up=False)
    a.send(1)
    wait_until(lambda: direction(emulator)["dropped_down"] == 2, "the drops")
    assert emulator.stats()["wires"][0]["up"] is False
    emulator.set("w", {"delay_us": 0}, up=True)
    a.send(2)
    assert b.receive() == (2, 100)


def test_equal_seeds_lose_the_same_frames(emulator: LinkEmulator, stations: tuple[Station, Station]) -> None:
    a, b = stations
    survivors = []
    for seed in (7, 7, 8):
        emulator.add("w", "ra", "rb", {"loss": 0.3, "seed": seed})
        for number in range(300):
            a.send(number)
        wait_until(lambda: accounted(direction(emulator)) == 300, "all frames")
        entry = direction(emulator)
        survivors.append(b.waiting())
        assert len(survivors[-1]) == 300 - entry["dropped_loss"] == entry["packets"]
        emulator.remove("w")
    assert survivors[0] == survivors[1] != survivors[2]
    # Six standard deviations of a binomial distribution.
    assert abs(len(survivors[0]) - 210) < 6 * (300 * 0.3 * 0.7) ** 0.5


def test_a_removed_wire_carries_nothing_and_frees_its_interfaces(
    emulator: LinkEmulator, stations: tuple[Station, Station]
) -> None:
    a, b = stations
    emulator.add("w", "ra", "rb")
    emulator.remove("w")
    a.send(0)
    assert emulator.stats()["directions"] == []
    emulator.add("again", "rb", "ra")
    a.send(1)
    assert b.receive() == (1, 100)


def internet_sum(data: bytes) -> int:
    """Return the checksum of RFC 1071 over an even number of bytes; 0 if they hold a right one."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def offloaded_segment(payload_bytes: int, gso_type: int) -> tuple[bytes, bytes]:
    """Return what TCP hands to a network card: the request, and a frame with an unfinished checksum."""
    length = 20 + payload_bytes
    pseudo_header = bytes([10, 0, 0, 1, 10, 0, 0, 2]) + struct.pack("!HH", socket.IPPROTO_TCP, length)
    partial = ~internet_sum(pseudo_header) & 0xFFFF
    ip_header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, socket.IPPROTO_TCP, 0)
    ip_header += pseudo_header[:8]
    ip_header = ip_header[:10] + struct.pack("!H", internet_sum(ip_header)) + ip_header[12:]
    tcp_header = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 5 << 4, 0x10, 1000, partial, 0)
    request = struct.pack("=BBHHHH", NEEDS_CHECKSUM, gso_type, 54, 500 if gso_type else 0, 34, 16)
    frame = (
        HEADER
        + struct.pack("!H", 0x0800)
        + ip_header
        + tcp_header
        + bytes(range(256)) * (payload_bytes // 256)
    )
    return request, frame


def test_checksums_are_finished_and_several_segments_in_one_are_refused(emulator: LinkEmulator) -> None:
    emulator.add("w", "ra", "rb")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender, Tap("eb", 0x0800) as receiver:
        sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sender.bind(("ea", 0))
        sender.send(b"".join(offloaded_segment(1024, GSO_TCPV4)))
        request, frame = offloaded_segment(512, GSO_NONE)
        sender.send(request + frame)
        received, _ = receiver.receive()
    assert (received[:50], received[52:]) == (frame[:50], frame[52:])
    assert received[50:52] != frame[50:52]
    pseudo_header = received[26:34] + struct.pack("!HH", socket.IPPROTO_TCP, len(received) - 34)
    assert internet_sum(pseudo_header + received[34:]) == 0
    entry = direction(emulator)
    assert (entry["oversize"], entry["dropped_receive"], entry["packets"]) == (1, 1, 1)


def test_vlan_tags_survive(emulator: LinkEmulator) -> None:
    emulator.add("w", "ra", "rb")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender, Tap("eb", ETHERTYPE) as receiver:
        sender.bind(("ea", 0))
        frame = HEADER + bytes.fromhex("8100 2064") + struct.pack("!HI", ETHERTYPE, 5) + bytes(80)
        sender.send(frame)
        assert receiver.receive() == (frame[:12] + frame[16:], 0x2064)
    assert direction(emulator)["bytes"] == len(frame)


class Tap:
    """Receives whole frames of one type, with the VLAN tag that the kernel takes off."""

    def __init__(self, interface: str, ethertype: int) -> None:
        self._ethertype = ethertype
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._socket.bind((interface, ETH_P_ALL))
        self._socket.settimeout(10)

    def __enter__(self) -> Tap:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def receive(self) -> tuple[bytes, int]:
        """Return the next frame without its tag, and the tag's control information."""
        while True:
            frame, ancillary, _, _ = self._socket.recvmsg(4096, 256)
            if struct.unpack_from("!H", frame, 12)[0] == self._ethertype:
                # struct tpacket_auxdata
                return frame, struct.unpack_from("=IIIHHH", ancillary[0][2])[5]


def test_an_interface_that_disappears_is_reported_and_others_go_on(
    emulator: LinkEmulator, stations: tuple[Station, Station]
) -> None:
    a, b = stations
    for side in "ab":
        ip("link", "add", f"q{side}", "type", "veth", "peer", "name", f"f{side}")
    emulator.add("doomed", "qa", "qb")
    emulator.add("w", "ra", "rb")
    ip("link", "del", "qa")
    errors = {wire["wire"]: wire["error"] for wire in emulator.stats()["wires"]}
    assert errors == {"doomed": 'The interface "qa" is gone: remove the wire.', "w": None}
    a.send(1)
    assert b.receive() == (1, 100)
    ip("link", "set", "ra", "down")
    assert emulator.stats()["wires"][1]["error"] == 'The interface "ra" is down: set it up.'
    ip("link", "set", "ra", "up")
    ip("link", "set", "ea", "up")
    wait_until(lambda: emulator.stats()["wires"][1]["error"] is None, "the end of the error")
    a.send(2)
    assert b.receive() == (2, 100)
    emulator.remove("doomed")


def test_refusals_are_sentences_that_name_the_field(emulator: LinkEmulator) -> None:
    emulator.add("w", "ra", "rb")
    attempts: list[tuple[Callable[[], None], str, str]] = [
        (lambda: emulator.add("w", "ra", "rb"), "wire", "already"),
        (lambda: emulator.add("v", "ra", "rb"), "a", 'end of the wire "w"'),
        (lambda: emulator.add("v", "nope", "rb"), "a", 'no network interface "nope"'),
        (lambda: emulator.add("v", "lo", "lo"), "b", "joins two interfaces"),
        (lambda: emulator.set("v", up=True), "wire", "the wires are w"),
        (lambda: emulator.remove("v"), "wire", "no wire"),
        (lambda: emulator.set("w", {"loss": 1}), "a_to_b.loss", "below 1, not 1"),
        (lambda: emulator.set("w", None, {"rate_bps": 0}), "b_to_a.rate_bps", "above 0"),
        (lambda: emulator.set("w", {"colour": 1}), "a_to_b.colour", "unknown field `colour`"),
    ]
    for attempt, field, words in attempts:
        with pytest.raises(RequestRefusedError) as caught:
            attempt()
        assert caught.value.field == field
        assert words in str(caught.value)
        assert str(caught.value).endswith(".")
    assert [wire["wire"] for wire in emulator.stats()["wires"]] == ["w"]


def test_bad_lines_are_answered_and_the_end_of_input_ends_it() -> None:
    result = subprocess.run(
        [find_binary()], input='nonsense\n[1]\n{"cmd":"stop"}\n', capture_output=True, text=True, check=True
    )
    answers = result.stdout.splitlines()
    assert [line.startswith('{"error":"') for line in answers] == [True, True, False]
    assert answers[2] == '{"ok":true}'
    assert subprocess.run([find_binary()], stdin=subprocess.DEVNULL, check=True).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_death_of_the_process_is_an_error(emulator: LinkEmulator, number: signal.Signals) -> None:
    emulator.add("w", "ra", "rb")
    os.kill(emulator.pid, number)
    with pytest.raises(EmulatorDiedError) as caught:
        wait_until(lambda: not emulator.stats(), "the end")
    assert caught.value.status == (0 if number == signal.SIGTERM else -number)
