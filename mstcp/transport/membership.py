"""Streams that come, go and change their rates while the connection goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mstcp import sockets
from mstcp.errors import ConnectionLost, LocalProtocolError
from mstcp.open_stream import OpenStream
from mstcp.streams import UNLIMITED_BPS, StreamSpec, weights_of
from mstcp.transport.base import Setup
from mstcp.transport.receiving import Receiving

_CLOSE_S = 30.0
"""How long a closed connection waits while the peer takes nothing more."""


class Membership(Receiving):
    """Which streams the connection has, and what the core says becomes of them."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._on_stream_lost = setup.on_stream_lost
        self._lost_reason = ConnectionLost("no stream of the connection is left")
        self._is_started = False
        self._removed_streams = 0
        # Told of each stream that has ended and is not opened again.
        self.on_stream_ended: Callable[[StreamSpec], None] | None = None
        if self._mstcp is not None:
            self._mstcp.set_timeouts(round(setup.reconnect_s * 1e9), round(_CLOSE_S * 1e9))

    @property
    def open_streams(self) -> tuple[OpenStream, ...]:
        """The streams as they were added, those that are gone included."""
        return tuple(self._streams)

    @property
    def open_ports(self) -> frozenset[int]:
        """The source ports of the streams that are connected, those that are being taken out included."""
        alive = 0 if self._closed else self._core.alive
        return frozenset(
            stream.spec.source_port for index, stream in enumerate(self._streams) if alive >> index & 1
        )

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

    def set_priority(self, index: int, priority: int) -> None:
        """Use a stream by this priority from now on, in both directions.

        The streams of the lowest value that work carry everything; others are their backup.

        Args:
            index: The stream's.
            priority: 0 to 255.

        Raises:
            LocalProtocolError: There is no such stream or priority, or the connection is plain TCP.
        """
        if self._mstcp is None:
            raise LocalProtocolError("a plain TCP connection has one stream: there is nothing to prefer")
        if not 0 <= index < len(self._streams) or not 0 <= priority < 1 << 32:
            raise LocalProtocolError(f"there is no stream {index!r} or no priority {priority!r}")
        self._mstcp.set_priority(index, priority, True)
        stream = self._streams[index]
        stream.spec = replace(stream.spec, priority=priority)
        self._note_event("priority_set", stream=index, priority=priority)
        self._pump()

    def add_stream(self, stream: OpenStream, stream_id: int, confirm: bytes | None = None) -> None:
        """Use a further stream, whose hellos are done.

        Args:
            stream: The stream.
            stream_id: Its id in the connection.
            confirm: The proof that its first frame must be, if the peer is the one that opened it.

        Raises:
            LocalProtocolError: The connection is plain TCP or has 64 streams.
        """
        weight = UNLIMITED_BPS if stream.spec.rate_bps is None else stream.spec.rate_bps
        slot = self._core.add_stream(stream_id, weight)
        if self._mstcp is not None:
            self._mstcp.set_priority(slot, stream.spec.priority, False)
            if confirm is not None:
                self._mstcp.expect_confirm(slot, confirm)
        # A new slot, or that of a stream that is gone.
        self._streams[slot : slot + 1] = [stream]
        gone = ~(1 << slot)
        self._ended_streams &= gone
        self._shut_streams &= gone
        self._removed_streams &= gone
        self._information["sockets"] = tuple(each.sock for each in self._streams)
        self._pace(slot)
        if not self._is_started:
            return
        self._note_event("stream_added", stream=slot, source_port=stream.spec.source_port)
        self._watch_reading()
        self._expect_decrypted(slot, stream)
        self._pump()

    def remove_stream(self, index: int) -> None:
        """Remove a stream while the others go on; nothing is lost, and it is not opened again.

        It gets no new frames, and ends when the peer has reported those it took.

        Raises:
            LocalProtocolError: There is no such stream, or it is the last.
        """
        if self._mstcp is None:
            raise LocalProtocolError("a plain TCP connection has one stream: close the connection")
        self._mstcp.remove_stream(index)
        self._removed_streams |= 1 << index
        self._note_event("stream_removed", stream=index)
        self._pump()

    def take_early(self, data: bytes) -> None:
        """Give the protocol the bytes that came with the client's hello."""
        assert self._mstcp is not None, "plain TCP has no hello"
        self._mstcp.early(data)
        self._deliver()
        self._pump()

    def _drop(self, stream: int, error: OSError | None) -> None:
        """Go on without a stream; its frames go over the others."""
        reason = "the stream ended: the peer vanished or the path broke"
        if error is not None:
            reason = error.strerror or str(error)
        self._let_go(stream, self._core.stream_end(stream), reason)
        self._take_events()
        self._pump()

    def _let_go(self, stream: int, proper: bool, reason: str) -> None:
        """Close the socket of a stream that is gone, and have it opened again if it should not be."""
        sock, spec = self._streams[stream].sock, self._streams[stream].spec
        self._unwatch(stream)
        if proper or self._removed_streams >> stream & 1:
            if proper:
                sock.close()
            else:
                sockets.reset(sock)
            if self.on_stream_ended is not None and not self._closed:
                self.on_stream_ended(spec)
            return
        self._lost_reason = ConnectionLost(reason, stream)
        self._note_event("stream_lost", stream=stream, reason=reason)
        sockets.reset(sock)
        if self._on_stream_lost is not None and not self._closed:
            self._on_stream_lost(spec)

    def _take_events(self) -> None:
        if self._mstcp is None or self._closed:
            return
        self._act_on(self._mstcp.events())

    def _act_on(self, events: Sequence[tuple[str, int]]) -> None:
        for kind, value in events:
            if self._closed:
                return
            if kind == "gone":
                self._let_go(value, False, "nothing came through it any more")
            elif kind == "delivered":
                self._finish(None, reset=False)
            elif kind == "undelivered":
                reason = f"closed before the peer had everything: {value} bytes were not delivered"
                self._finish(ConnectionLost(reason), reset=True)
            elif kind == "lost":
                self._finish(self._lost_reason, reset=True)
            else:
                self._note_event(f"stream_{kind}", stream=value)

    def _unwatch(self, index: int) -> None:
        """Have the loop watch a stream no more."""
        descriptor, mask = self._streams[index].descriptor, 1 << index
        if self._read_watched & mask:
            self._loop.remove_reader(descriptor)
        if self._write_watched & mask:
            self._loop.remove_writer(descriptor)
        self._read_watched &= ~mask
        self._write_watched &= ~mask
