"""Captures of emulated links, as another program reads them."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from experiments import cli
from experiments.engines.live import capture
from tests.fakes.lab import Lab


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    """The blocks of a file, whose lengths must agree at both ends."""
    found, place = [], 0
    while place < len(data):
        kind, size = struct.unpack_from("<II", data, place)
        assert struct.unpack_from("<I", data, place + size - 4) == (size,)
        assert size % 4 == 0
        found.append((kind, data[place + 8 : place + size - 4]))
        place += size
    return found


def packets(data: bytes) -> list[tuple[int, bytes, bool]]:
    """Time (ns), bytes and whether it went out, of each packet."""
    (section, _), (interface, described), *rest = blocks(data)
    assert (section, interface) == (0x0A0D0D0A, 1)
    assert struct.unpack_from("<H", described) == (1,), "Ethernet"
    found = []
    for kind, body in rest:
        _, high, low, size, _ = struct.unpack_from("<IIIII", body)
        flags = struct.unpack_from("<HHI", body, 20 + -(-size // 4) * 4)
        assert (kind, flags[:2]) == (6, (2, 4))
        found.append((high << 32 | low, body[20 : 20 + size], flags[2] == 2))
    return found


def test_a_file_has_what_was_written() -> None:
    told = [(1_700_000_000_123_456_789, b"x" * 61, True), (1_700_000_000_223_456_789, b"y" * 64, False)]
    data = capture.section() + capture.interface("S0 to S4")
    for time_ns, frame, is_outgoing in told:
        data += capture.packet(frame, time_ns, is_outgoing=is_outgoing)
    assert packets(data) == told


def test_the_simulator_says_what_it_has_instead(lab: Lab, tmp_path: Path) -> None:
    call = ["run", "butterfly", "--engine", "sim", "--capture", "S0-S4", "--out", str(tmp_path / "out")]
    assert "--trace pcap has the simulator's packets" in lab.refusal(*call)


@pytest.mark.root
@pytest.mark.timeout(600)
def test_a_live_link_is_captured_in_both_directions(tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = ["--case", "1", "--protocol", "ospf", "--duration", "1", "--capture", "S4-S0", "--no-report"]
    cli.main(["run", "butterfly", "--engine", "live", "--out", str(out), *more])
    (file,) = (out / "logs").glob("*/S0-S4.pcapng")
    seen = packets(file.read_bytes())
    assert all(before[0] <= after[0] for before, after in pairwise(seen))
    sizes: dict[bool, list[int]] = {True: [], False: []}
    for _, frame, is_outgoing in seen:
        sizes[is_outgoing].append(len(frame))
    assert max(map(max, sizes.values())) == 590, "segments of the paper's size"
    assert all(len(each) > 50 for each in sizes.values()), "data one way, acknowledgements the other"
