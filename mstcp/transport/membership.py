"""Streams that come, go and change their rates while the connection goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from mstcp import sockets
from mstcp.errors import ConnectionLost, LocalProtocolError
from mstcp.open_stream import OpenStream
from mstcp.streams import UNLIMITED_BPS, weights_of
from mstcp.transport.base import Setup
from mstcp.transport.receiving import Receiving


class Membership(Receiving):
    """Which streams the connection has; what it does without any."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._reconnect_s = setup.reconnect_s
        self._on_stream_lost = setup.on_stream_lost
        # Since we close: the peer has ended a stream as it should.
        self._peer_ended_stream = False
        # Runs while there is no stream.
        self._lost_timer: asyncio.TimerHandle | None = None

    def set_rates(self, rates: Mapping[int, float]) -> None:
        """Give running streams new rates: the weights of the draw and the pacing.

        Args:
            rates: Goodput in bit/s by source port; streams that are not named get 0 and carry no new frames.

        Raises:
            LocalProtocolError: No stream of the connection is left with a rate.
        """
        specs = [
            replace(stream.spec, rate_bps=rates.get(stream.spec.source_port, 0.0)) for stream in self._streams
        ]
        self._core.set_weights(weights_of(specs))
        self._note_event("rates_set", rates={spec.source_port: spec.rate_bps for spec in specs})
        for index, spec in enumerate(specs):
            self._streams[index].spec = spec
            if not self._closed and self._core.alive >> index & 1:
                self._pace(index)
        self._pump()

    def add_stream(self, stream: OpenStream, stream_id: int) -> None:
        """Use a further stream, whose hellos are done.

        Raises:
            LocalProtocolError: The connection is plain TCP or has 64 streams.
        """
        weight = UNLIMITED_BPS if stream.spec.rate_bps is None else stream.spec.rate_bps
        slot = self._core.add_stream(stream_id, weight)
        # A new slot, or that of a stream that is gone.
        self._streams[slot : slot + 1] = [stream]
        gone = ~(1 << slot)
        self._ended_streams &= gone
        self._shut_streams &= gone
        if self._lost_timer is not None:
            self._lost_timer.cancel()
            self._lost_timer = None
        self._information["sockets"] = tuple(each.sock for each in self._streams)
        self._pace(slot)
        self._removed &= gone
        self._note_event("stream_added", stream=slot, source_port=stream.spec.source_port)
        self._watch_reading()
        self._expect_decrypted(slot, stream)
        self._pump()

    def remove_stream(self, index: int) -> None:
        """Take a stream out while the others go on; nothing is lost, and it is not opened again.

        It gets no new frames, and ends when the peer has reported those it took.

        Raises:
            LocalProtocolError: There is no such stream, or it is the last.
        """
        if self._mstcp is None:
            raise LocalProtocolError("a plain TCP connection has one stream: close the connection")
        self._mstcp.remove_stream(index)
        self._removed |= 1 << index
        self._note_event("stream_removed", stream=index)
        self._pump()

    def _drop(self, stream: int, error: OSError | None) -> None:
        """Go on without a stream; its frames go over the others."""
        sock = self._streams[stream].sock
        self._unwatch(stream)
        proper = self._core.stream_end(stream) or bool(error is None and self._removed >> stream & 1)
        if not proper:
            self._note_event("stream_lost", stream=stream, reason=error and error.strerror)
        if proper:
            self._peer_ended_stream |= self._closing  # else it was taken out
            sock.close()
        else:
            sockets.reset(sock)
        if not self._core.alive:
            self._all_gone(stream, proper, error)
        elif not proper and self._on_stream_lost is not None and not self._removed >> stream & 1:
            self._on_stream_lost(self._streams[stream].spec)
        self._pump()

    def _all_gone(self, stream: int, proper: bool, error: OSError | None) -> None:
        reason = "the stream ended: the peer vanished or the path broke"
        if error is not None:
            reason = error.strerror or str(error)
        nothing_left = not self._core.queued_bytes and not self.counters().unacknowledged_bytes
        if self._closing and (self._core.finished or (proper and nothing_left)):
            self._finish(None, reset=False)
        elif proper and self._core.ended and nothing_left:
            return  # the peer is done; so are we when the application closes
        elif proper or self._reconnect_s <= 0:
            self._finish(ConnectionLost(reason, stream), reset=True)
        else:
            if self._on_stream_lost is not None:
                self._on_stream_lost(self._streams[stream].spec)
            lost = ConnectionLost(reason, stream)
            self._lost_timer = self._loop.call_later(self._reconnect_s, self._finish_lost, lost)

    def _finish_lost(self, error: ConnectionLost) -> None:
        self._finish(error, reset=True)

    def _unwatch(self, index: int) -> None:
        """Have the loop watch a stream no more."""
        descriptor, mask = self._streams[index].descriptor, 1 << index
        if self._read_watched & mask:
            self._loop.remove_reader(descriptor)
        if self._write_watched & mask:
            self._loop.remove_writer(descriptor)
        self._read_watched &= ~mask
        self._write_watched &= ~mask
