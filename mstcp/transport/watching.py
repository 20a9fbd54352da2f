"""What the event loop watches the streams' sockets for."""

from __future__ import annotations

from collections.abc import Callable

from mstcp.transport.state import State


class Watching:
    """Has the loop watch streams for bytes and for room.

    Args:
        state: Of the connection.
        on_readable: Told which stream may be read.
        on_writable: Told which stream may have room.

    Attributes:
        readers: Streams (bits) that are watched for bytes.
        writers: Streams (bits) that are watched for room.
    """

    def __init__(
        self, state: State, *, on_readable: Callable[[int], None], on_writable: Callable[[int], None]
    ) -> None:
        self._state = state
        self._on_readable = on_readable
        self._on_writable = on_writable
        self.readers = 0
        self.writers = 0

    def watch_readers(self, wanted: int) -> None:
        """Watch just these streams (bits) for bytes."""
        changed = wanted ^ self.readers
        if not changed:
            return
        self.readers = wanted
        loop = self._state.loop
        for index, stream in enumerate(self._state.streams):
            if changed >> index & 1:
                if wanted >> index & 1:
                    loop.add_reader(stream.descriptor, self._on_readable, index)
                else:
                    loop.remove_reader(stream.descriptor)

    def watch_writer(self, stream: int) -> None:
        """Watch a stream for room."""
        state = self._state
        if not state.is_lent and not self.writers >> stream & 1:
            self.writers |= 1 << stream
            state.loop.add_writer(state.streams[stream].descriptor, self._on_writable, stream)

    def forget_writer(self, stream: int) -> None:
        """Watch a stream for room no more."""
        if self.writers >> stream & 1:
            self.writers &= ~(1 << stream)
            self._state.loop.remove_writer(self._state.streams[stream].descriptor)

    def forget(self, stream: int) -> None:
        """Watch a stream no more."""
        if self.readers >> stream & 1:
            self.readers &= ~(1 << stream)
            self._state.loop.remove_reader(self._state.streams[stream].descriptor)
        self.forget_writer(stream)

    def forget_all(self) -> None:
        """Watch nothing."""
        for stream in range(len(self._state.streams)):
            self.forget(stream)
