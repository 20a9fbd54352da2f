"""Many connections within one: channels, each with its own ends and its own window; pure.

A frame: channel (32 bits), kind (8 bits), 0 (8 bits), the length of what follows (16 bits), and that.

| kind | | what follows |
|---|---|---|
| 1 | OPEN | a request as preamble.py has it; by the side that connected, with channels from 1 on |
| 2 | ANSWER | its answer; after one that refuses nothing follows |
| 3 | DATA | bytes, 16,384 at most and no more than the window |
| 4 | END | nothing: this side sends no more bytes |
| 5 | RESET | nothing: the channel is broken |
| 6 | WINDOW | how many bytes more may be sent (32 bits), beyond 262,144 and what was granted before |
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum

from mstcp.errors import RemoteProtocolError

WINDOW_BYTES = 1 << 18
FRAME_BYTES = 1 << 14
"""Of data in one frame; the channels that send take turns by frames."""
MAX_CHANNELS = 1 << 12
_HEADER = struct.Struct(">IBBH")
_WINDOW = struct.Struct(">I")


class Kind(IntEnum):
    """What a frame, and what is reported of it, means."""

    OPEN = 1
    ANSWER = 2
    DATA = 3
    END = 4
    RESET = 5
    WINDOW = 6


@dataclass(frozen=True)
class Received:
    """What the peer has said on a channel.

    Attributes:
        channel: Its number.
        kind: All but WINDOW.
        data: Of OPEN, ANSWER and DATA.
    """

    channel: int
    kind: Kind
    data: bytes = b""


@dataclass
class _Channel:
    queued: bytearray = field(default_factory=bytearray)
    may_send: int = WINDOW_BYTES
    may_come: int = WINDOW_BYTES
    ends: bool = False
    has_ended: bool = False
    peer_ended: bool = False


class Channels:
    """The channels of one connection.

    Args:
        opens: This side opens them; else the peer does.
    """

    def __init__(self, *, opens: bool) -> None:
        self._opens = opens
        self._channels: dict[int, _Channel] = {}
        self._last = 0
        self._incoming = bytearray()
        self._controls: deque[bytes] = deque()
        # Those that have something to send and may, in the order of their turns.
        self._turns: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._channels)

    # --- sending --------------------------------------------------------------------------------------------
    def open(self, request: bytes) -> int:
        """Open a channel; return its number."""
        self._last += 1
        self._channels[self._last] = _Channel()
        self._control(self._last, Kind.OPEN, request)
        return self._last

    def answer(self, channel: int, answer: bytes, *, refuses: bool) -> None:
        """Answer the peer's OPEN."""
        if channel in self._channels:
            self._control(channel, Kind.ANSWER, answer)
            if refuses:
                self._forget(channel)

    def write(self, channel: int, data: bytes) -> None:
        """Queue bytes; those for a channel that is gone are dropped."""
        if (it := self._channels.get(channel)) is not None and not it.ends:
            it.queued += data
            self._take_turns(channel, it)

    def end(self, channel: int) -> None:
        """Send the end after what is queued."""
        if (it := self._channels.get(channel)) is not None and not it.ends:
            it.ends = True
            self._take_turns(channel, it)

    def reset(self, channel: int) -> None:
        """Break a channel; what is queued is dropped."""
        if channel in self._channels:
            self._control(channel, Kind.RESET)
            self._forget(channel)

    def grant(self, channel: int, count: int) -> None:
        """Let the peer send as many bytes more."""
        if (it := self._channels.get(channel)) is not None and count and not it.peer_ended:
            it.may_come += count
            self._control(channel, Kind.WINDOW, _WINDOW.pack(count))

    def queued_bytes(self, channel: int) -> int:
        """Return how many bytes wait to be sent on a channel."""
        it = self._channels.get(channel)
        return 0 if it is None else len(it.queued)

    def poll(self) -> tuple[bytes, int | None] | None:
        """Return the next frame to send, and the channel if it carries queued bytes or their end."""
        if self._controls:
            return self._controls.popleft(), None
        if not self._turns:
            return None
        channel = self._turns.popleft()
        it = self._channels[channel]
        if not it.queued:
            it.has_ended = True
            if it.peer_ended:
                self._forget(channel)
            return _frame(channel, Kind.END), channel
        data = bytes(it.queued[: min(FRAME_BYTES, it.may_send)])
        del it.queued[: len(data)]
        it.may_send -= len(data)
        self._take_turns(channel, it)
        return _frame(channel, Kind.DATA, data), channel

    def _control(self, channel: int, kind: Kind, data: bytes = b"") -> None:
        self._controls.append(_frame(channel, kind, data))

    def _take_turns(self, channel: int, it: _Channel) -> None:
        sends = it.may_send > 0 if it.queued else it.ends and not it.has_ended
        if sends and channel not in self._turns:
            self._turns.append(channel)

    def _forget(self, channel: int) -> None:
        del self._channels[channel]
        if channel in self._turns:
            self._turns.remove(channel)

    # --- receiving ------------------------------------------------------------------------------------------
    def receive(self, data: bytes) -> list[Received]:
        """Take the peer's bytes; return what it has said.

        Raises:
            RemoteProtocolError: They break the protocol.
        """
        self._incoming += data
        received, place = [], 0
        while len(self._incoming) - place >= _HEADER.size:
            channel, kind, zero, length = _HEADER.unpack_from(self._incoming, place)
            if zero or length > FRAME_BYTES or kind not in Kind.__members__.values():
                raise RemoteProtocolError("the peer sent what is no frame of a channel")
            end = place + _HEADER.size + length
            if len(self._incoming) < end:
                break
            what = Received(channel, Kind(kind), bytes(self._incoming[place + _HEADER.size : end]))
            place = end
            if self._take(what):
                received.append(what)
        del self._incoming[:place]
        return received

    def _take(self, what: Received) -> bool:
        """Note what the peer has said; return whether it concerns who uses the channel."""
        if what.kind is Kind.OPEN:
            if self._opens or what.channel <= self._last:
                raise RemoteProtocolError(f"the peer opens channel {what.channel}, which it must not")
            self._last = what.channel
            self._channels[what.channel] = _Channel()
            return True
        if what.channel > self._last:
            raise RemoteProtocolError(f"the peer uses channel {what.channel}, which is not open")
        it = self._channels.get(what.channel)
        # The peer may not know yet that this side has broken the channel.
        return it is not None and self._note(it, what)

    def _note(self, it: _Channel, what: Received) -> bool:
        if what.kind is Kind.DATA:
            it.may_come -= len(what.data)
            if it.may_come < 0 or it.peer_ended:
                raise RemoteProtocolError(f"the peer sent more on channel {what.channel} than it may")
        elif what.kind is Kind.WINDOW:
            if len(what.data) != _WINDOW.size:
                raise RemoteProtocolError("the peer sent a window of no size")
            it.may_send += _WINDOW.unpack(what.data)[0]
            self._take_turns(what.channel, it)
            return False
        elif what.kind is Kind.END:
            it.peer_ended = True
            if it.has_ended:
                self._forget(what.channel)
        elif what.kind is Kind.RESET:
            self._forget(what.channel)
        return True


def _frame(channel: int, kind: Kind, data: bytes = b"") -> bytes:
    return _HEADER.pack(channel, kind, 0, len(data)) + data
