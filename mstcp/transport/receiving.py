"""From the sockets through the core to the protocol."""

from __future__ import annotations

import errno
import time

from mstcp import _core
from mstcp.errors import ConnectionLost, RemoteProtocolError
from mstcp.open_stream import OpenStream, errno_of, strerror
from mstcp.transport.base import NOT_NOW, Setup
from mstcp.transport.delivery import Delivery
from mstcp.transport.sending import Sending


class Receiving(Sending):
    """Reads the streams and gives the protocol what is in order."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._delivery = Delivery(setup.protocol, self._fail)
        # Streams (bits) that the loop watches for bytes.
        self._read_watched = 0

    def _expect_decrypted(self, index: int, stream: OpenStream) -> None:
        """Read what came with the hello and was decrypted: no socket tells of it."""
        if stream.layer is not None:
            self._loop.call_soon(self._on_readable, index)

    def _watch_reading(self) -> None:
        """Have the loop watch just the streams that may be read."""
        is_held = self._is_plain and self._delivery.is_paused and not self._closing
        stands_by = self._closed or self._is_lent or is_held
        wanted = 0 if stands_by else self._core.alive & ~self._ended_streams
        changed = wanted ^ self._read_watched
        if not changed:
            return
        self._read_watched = wanted
        for index, stream in enumerate(self._streams):
            if changed >> index & 1:
                if wanted >> index & 1:
                    self._loop.add_reader(stream.descriptor, self._on_readable, index)
                else:
                    self._loop.remove_reader(stream.descriptor)

    def _on_readable(self, stream: int) -> None:
        if not self._read_watched >> stream & 1:
            return
        if self._direct is not None:
            self._exchange(self._direct, stream)
            if self._delivery.is_paused:
                self._changed()
            return
        core = self._core
        try:
            count = self._receive(stream)
            if count < 0:
                if -count not in NOT_NOW:
                    self._lose(stream, OSError(-count, strerror(-count)))
                return
            if count == 0 and self._is_plain:
                core.stream_end(stream)
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        self._deliver()
        self._after_reading(stream, count == 0)

    def _exchange(self, core: _core.Connection, stream: int) -> None:
        """Read, deliver and send by one call of the core."""
        deliver = self._closing or not self._delivery.is_paused
        try:
            count, data, is_end, outcome = core.exchange(time.monotonic_ns(), stream, deliver)
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        if count < 0:
            if -count not in NOT_NOW:
                self._lose(stream, OSError(-count, strerror(-count)))
            return
        if outcome is not None:
            if outcome[4] is not None and data and not self._closing:
                # A stream broke: what it still brings comes after this.
                self._delivery.give(data)
                data = []
            if not self._closed:
                self._note(outcome)
        if data and not self._closing:
            self._delivery.give(data)
            if core.ready_bytes and not self._closed:
                self._deliver()
                self._pump()
        if is_end:
            self._deliver_end()
            self._after_reading(stream, count == 0)

    def _after_reading(self, stream: int, stream_ended: bool) -> None:
        """Look after the end of the stream or of the connection, and send."""
        if stream_ended:
            self._ended_streams |= 1 << stream
            self._watch_reading()
        if self._closed or self._is_given_up():
            return
        if stream_ended and not self._is_plain:
            self._drop(stream, None)
        else:
            self._pump()

    def _is_given_up(self) -> bool:
        """End the connection if the peer has said that it gave up."""
        told = self._core.closed_by_peer
        if told is not None and not self._closed:
            self._finish(ConnectionLost(told[1] or f"the peer gave up (code {told[0]})"), reset=True)
        return told is not None

    def _read_out(self, stream: int) -> None:
        """Take what came before a stream broke: it may say why."""
        try:
            while self._receive(stream) > 0:
                pass
        except RemoteProtocolError as error:
            self._refuse(error)
            return
        self._deliver()

    def _receive(self, stream: int) -> int:
        """Read once into the core; return how much came, 0 at the end, or an errno below 0."""
        layer = self._streams[stream].layer
        if layer is None:
            return self._core.receive_from(stream)
        try:
            data, ended = layer.receive(self._streams[stream].sock)
        except OSError as error:
            return -errno_of(error)
        if layer.unsent_bytes:
            self._watch_writing(stream)
        if data:
            self._core.receive(stream, data)
            if ended:
                self._loop.call_soon(self._on_readable, stream)
        return len(data) if data or ended else -errno.EAGAIN

    def _resume(self) -> None:
        if not self._delivery.is_paused and not self._closed:
            self._watch_reading()
            self._deliver()
            self._pump()

    def _deliver(self) -> None:
        """Give the application what is in order; while it does not read, the window closes."""
        core, delivery = self._core, self._delivery
        while (core.ready_bytes or delivery.held) and (self._closing or not delivery.is_paused):
            delivery.give(core.take())
        self._deliver_end()

    def _deliver_end(self) -> None:
        """Tell the application that the peer's bytes have ended, once."""
        if self._core.ended and self._delivery.give_end():
            self.close()
