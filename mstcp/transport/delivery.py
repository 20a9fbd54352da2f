"""Giving a protocol bytes in order, as fast as it wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any


class Delivery:
    """Gives a protocol the peer's bytes and their end; what is left when it pauses in the middle is held.

    Args:
        protocol: See `set_protocol`.
        on_failure: Told of the exception that the protocol raised; nothing is given after it.

    Attributes:
        held: Bytes in order that were not given yet.
        is_giving: The protocol is at it now; it must not be called again meanwhile.
        is_paused: It wants nothing now (`pause_reading`).
        is_stopped: Nothing is received any more: bytes are thrown away.
    """

    def __init__(self, protocol: asyncio.BaseProtocol, on_failure: Callable[[Exception], None]) -> None:
        self.set_protocol(protocol)
        self._on_failure = on_failure
        # A list takes a tenth of a deque's memory, and holds a few pieces at most.
        self.held: list[bytes | memoryview] = []
        self.is_giving = False
        self.is_paused = False
        self.is_stopped = False
        self._end_told = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Set who gets the bytes: an `asyncio.Protocol` or an `asyncio.BufferedProtocol`."""
        self._protocol: Any = protocol
        self._is_buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def give(self, pieces: Sequence[bytes]) -> None:
        """Pass pieces on after those that are held, until the protocol pauses, closes or fails."""
        held = self.held
        self.is_giving = True
        try:
            if len(pieces) == 1 and not (held or self.is_paused or self.is_stopped or self._is_buffered):
                self._protocol.data_received(pieces[0])
                return
            held.extend(pieces)
            while held and not (self.is_paused or self.is_stopped):
                data = held.pop(0)
                if self._is_buffered:
                    if rest := self._fill_buffers(data):
                        held.insert(0, rest)
                else:
                    self._protocol.data_received(data if type(data) is bytes else bytes(data))
        except Exception as error:  # as asyncio has it: whatever a protocol raises ends the connection
            self._fail(error)
        finally:
            self.is_giving = False
        if self.is_stopped:
            held.clear()

    def give_end(self) -> bool:
        """Tell the protocol, once, after all bytes and not while it pauses, that they have ended.

        Returns:
            Whether the connection is to be closed now, as the protocol answered.
        """
        if self.held or self.is_paused or self._end_told or self.is_stopped:
            return False
        self._end_told = True
        try:
            return not self._protocol.eof_received()
        except Exception as error:  # as above
            self._fail(error)
            return False

    def _fail(self, error: Exception) -> None:
        self.is_stopped = True
        self._on_failure(error)

    def _fill_buffers(self, data: bytes | memoryview) -> memoryview:
        """Copy bytes to where the protocol wants them; return those that it has not taken."""
        rest = memoryview(data)
        while rest and self._is_buffered and not (self.is_paused or self.is_stopped):
            buffer = self._protocol.get_buffer(len(rest))
            count = min(len(buffer), len(rest))
            if not count:
                raise RuntimeError("get_buffer() returned an empty buffer")
            memoryview(buffer)[:count] = rest[:count]
            rest = rest[count:]
            self._protocol.buffer_updated(count)
        return rest
