"""Channels within one connection: each its own bytes, ends and window, whatever is cut and broken when."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from mstcp.errors import RemoteProtocolError
from mstcp.tools.channels import FRAME_BYTES, WINDOW_BYTES, Channels, Kind


class Side:
    """One side of the connection, and all that its peer has said."""

    def __init__(self, rng: random.Random, *, opens: bool) -> None:
        self.rng = rng
        self.channels = Channels(opens=opens)
        self.wire = bytearray()
        self.written: dict[int, bytearray] = {}
        self.came: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.peer_ended: set[int] = set()
        self.broken: set[int] = set()

    def act(self) -> None:
        """Do something on a channel."""
        what = self.rng.choice(("open", "write", "write", "write", "end", "reset"))
        if what == "open" and self.channels._opens and len(self.written) < 6:
            self.written[self.channels.open(b"a request")] = bytearray()
        elif self.written:
            number = self.rng.choice(list(self.written))
            if number in self.broken:
                return
            if what == "write" and number not in self.ended:
                data = self.rng.randbytes(self.rng.choice((1, 5000, 200_000)))
                self.channels.write(number, data)
                self.written[number] += data
            elif what == "end":
                self.channels.end(number)
                self.ended.add(number)
            elif what == "reset" and self.rng.random() < 0.2:
                self.channels.reset(number)
                self.broken.add(number)

    def send(self) -> bool:
        frame = self.channels.poll()
        self.wire += b"" if frame is None else frame[0]
        return frame is not None

    def receive(self, data: bytes) -> None:
        for what in self.channels.receive(data):
            if what.kind is Kind.OPEN:
                assert what.data == b"a request"
                self.written[what.channel] = bytearray()
                self.channels.answer(what.channel, b"fine", refuses=False)
            elif what.kind is Kind.DATA:
                self.came.setdefault(what.channel, bytearray()).extend(what.data)
                assert what.channel not in self.peer_ended | self.broken
                self.channels.grant(what.channel, len(what.data))
            elif what.kind is Kind.END:
                self.peer_ended.add(what.channel)
            elif what.kind is Kind.RESET:
                self.broken.add(what.channel)


def carry(one: Side, other: Side) -> bool:
    """Bring some of what a side has sent to the other."""
    count = one.rng.randrange(1, 40_000)
    data = bytes(one.wire[:count])
    del one.wire[:count]
    other.receive(data)
    return bool(data)


@pytest.mark.parametrize("seed", range(20))
def test_each_channel_brings_its_own_bytes_and_ends_and_then_nothing_is_left(seed: int) -> None:
    rng = random.Random(seed)
    sides = Side(rng, opens=True), Side(rng, opens=False)
    for _ in range(400):
        for side in sides:
            side.act()
            side.send()
        carry(*rng.choice((sides, sides[::-1])))
    for side in sides:
        for number in side.written.keys() - side.broken:
            side.channels.end(number)
            side.ended.add(number)
    while any([side.send() for side in sides] + [carry(*sides), carry(*sides[::-1])]):
        pass
    for one, other in (sides, sides[::-1]):
        assert not len(one.channels)
        for number, written in one.written.items():
            came = other.came.get(number, bytearray())
            assert written.startswith(came)
            assert number in one.broken | other.broken or (came == written and number in other.peer_ended)


def test_channels_take_turns_and_one_that_is_not_read_holds_no_other_up() -> None:
    one, other = Channels(opens=True), Channels(opens=False)
    first, second = one.open(b""), one.open(b"")
    one.write(first, bytes(2 * WINDOW_BYTES))
    one.write(second, bytes(3 * FRAME_BYTES))
    frames = []
    while (frame := one.poll()) is not None:
        frames.append(frame[1])
        other.receive(frame[0])
    sent = [number for number in frames if number is not None]
    assert all(before != after for before, after in pairwise(sent[:6]))
    # What the window allows.
    assert sent.count(first) == WINDOW_BYTES // FRAME_BYTES and sent.count(second) == 3
    other.grant(first, FRAME_BYTES)
    one.receive(other.poll()[0])  # type: ignore[index]
    assert one.poll() is not None and one.poll() is None


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("00000001 03 00 0001 61", "channel 1, which is not open"),
        ("00000001 07 00 0000", "no frame of a channel"),
        ("00000001 01 01 0000", "no frame of a channel"),
        ("00000001 01 00 4001", "no frame of a channel"),
        ("00000001 01 00 0000 00000001 06 00 0001 61", "window of no size"),
        ("00000001 01 00 0000 00000001 01 00 0000", "opens channel 1"),
        ("00000001 01 00 0000 00000001 04 00 0000 00000001 03 00 0001 61", "more on channel 1 than it may"),
    ],
)
def test_what_breaks_the_rules_is_refused(frame: str, reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        Channels(opens=False).receive(bytes.fromhex(frame))
    with pytest.raises(RemoteProtocolError):
        Channels(opens=True).receive(bytes.fromhex(frame))


def test_more_than_the_window_is_refused() -> None:
    other = Channels(opens=False)
    data = bytes.fromhex("00000001 01 00 0000") + (bytes.fromhex("00000001 03 00 4000") + bytes(1 << 14)) * 16
    other.receive(data)
    with pytest.raises(RemoteProtocolError, match="more on channel 1 than it may"):
        other.receive(bytes.fromhex("00000001 03 00 0001 61"))
