"""Giving a protocol bytes in order, as fast as it wants them."""

from __future__ import annotations

import asyncio
from typing import Any


class Delivery:
    """Gives a protocol the peer's bytes and their end; what is left when it pauses in the middle is held.

    Attributes:
        protocol: Gets the bytes; an `asyncio.Protocol` or an `asyncio.BufferedProtocol`.
        held: Pieces in order that were not given yet.
        is_paused: The protocol wants nothing now (`pause_reading`).
        is_stopped: Nothing is received any more: bytes are thrown away.
    """

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol: Any = protocol
        self.held: list[bytes] = []
        self.is_paused = False
        self.is_stopped = False
        self._end_told = False

    def give(self, pieces: list[bytes]) -> None:
        """Pass pieces on after those that are held, until the protocol pauses or closes."""
        if self.held:
            pieces, self.held = self.held + pieces, []
        for number, data in enumerate(pieces):
            if self.is_stopped:
                return
            if self.is_paused:
                self.held = pieces[number:]
                return
            if isinstance(self.protocol, asyncio.BufferedProtocol):
                self._fill_buffers(data)
            else:
                self.protocol.data_received(data)

    def give_end(self) -> bool:
        """Tell the protocol, once and after all bytes, that they have ended.

        Returns:
            Whether the connection is to be closed now, as the protocol answered.
        """
        if self.held or self._end_told or self.is_stopped:
            return False
        self._end_told = True
        return not self.protocol.eof_received()

    def _fill_buffers(self, data: bytes) -> None:
        with memoryview(data) as rest:
            at = 0
            while at < len(rest):
                buffer = self.protocol.get_buffer(len(rest) - at)
                count = min(len(buffer), len(rest) - at)
                if not count:
                    raise RuntimeError("get_buffer() returned an empty buffer")
                memoryview(buffer)[:count] = rest[at : at + count]
                at += count
                self.protocol.buffer_updated(count)
