"""Streams that come, go and change their rates while the connection goes on."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from mstcp import _core, sockets
from mstcp.errors import ConnectionLost, LocalProtocolError
from mstcp.hello import NONCE_BYTES
from mstcp.open_stream import OpenStream
from mstcp.streams import UNLIMITED_BPS, StreamSpec, weights_of
from mstcp.transport.health import Health
from mstcp.transport.receiving import Receiver
from mstcp.transport.sending import Sender
from mstcp.transport.state import Setup, State
from mstcp.transport.watching import Watching

_OWN_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
    (socket.SOL_SOCKET, getattr(socket, "SO_MAX_PACING_RATE", 47)),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_NOTSENT_LOWAT", 25)),
)
_CLOSE_S = 30.0
"""How long a closed connection waits while the peer takes nothing more."""


class Finish(Protocol):
    """Ends the connection."""

    def __call__(self, error: Exception | None, *, reset: bool) -> None:
        """Close the sockets and tell the application."""


class Membership:
    """Which streams the connection has, and what the core says becomes of them.

    Args:
        setup: Of the connection.
        state: Of the connection.
        watching: Has the loop watch the streams.
        sender: Sends what others take over.
        receiver: Reads new streams.
        health: Told of streams that come and go.
        finish: Ends the connection when the core says so.

    Attributes:
        is_started: The protocol knows of the connection, and streams are read.
        is_opening: The first hello has not been answered.
        on_stream_ended: Told of each stream that has ended and is not opened again.
    """

    def __init__(
        self,
        setup: Setup,
        state: State,
        watching: Watching,
        sender: Sender,
        receiver: Receiver,
        health: Health,
        *,
        finish: Finish,
    ) -> None:
        self._state = state
        self._watching = watching
        self._sender = sender
        self._receiver = receiver
        self._health = health
        self._finish = finish
        self._on_stream_lost = setup.on_stream_lost
        self._on_opened = setup.on_opened
        self._lost_reason = ConnectionLost("no stream of the connection is left")
        # By level and name: what the application has set.
        self._options: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.is_started = False
        self.is_opening = setup.on_opened is not None
        self._has_greeted = False
        self.on_stream_ended: Callable[[StreamSpec], None] | None = None
        if state.mstcp is not None:
            state.mstcp.set_timeouts(round(setup.reconnect_s * 1e9), round(_CLOSE_S * 1e9))

    @property
    def open_streams(self) -> tuple[OpenStream, ...]:
        """The streams as they were added, those that are gone included."""
        return tuple(self._state.streams)

    @property
    def alive_streams(self) -> int:
        """How many streams carry bytes now."""
        return self._state.core.alive.bit_count()

    @property
    def open_ports(self) -> frozenset[int]:
        """The source ports of the streams that are connected, those that are being taken out included."""
        alive = 0 if self._state.is_closed else self._state.core.alive
        return frozenset(
            stream.spec.source_port for index, stream in enumerate(self._state.streams) if alive >> index & 1
        )

    def pace(self, index: int) -> None:
        """Have a stream keep to its rate, and be looked after."""
        self._sender.pace(index)
        self._health.keep_alive(self._state.streams[index])
        for option in self._options.values():
            self._state.streams[index].sock.setsockopt(*option)

    def set_option(self, option: tuple[Any, ...]) -> None:
        """Set an option, as for `socket.setsockopt`, on the sockets of all streams, also of later ones.

        Raises:
            OSError: The system refuses it, or the library sets it itself.
        """
        if option[:2] in _OWN_OPTIONS:
            what = "the library sets this option itself (rates, and what may wait in the sockets)"
            raise OSError(errno.ENOPROTOOPT, what)
        for index, stream in enumerate(self._state.streams):
            if not self._state.is_closed and self._state.is_alive(index):
                stream.sock.setsockopt(*option)
        self._options[option[0], option[1]] = option

    def set_allocation(self, allocation: object) -> None:
        """Note what `get_extra_info("allocation")` returns."""
        self._state.information["allocation"] = allocation

    def set_rates(self, rates: Mapping[int, float]) -> None:
        """As `ConnectionTransport.set_rates` says."""
        old = [stream.spec for stream in self._state.streams]
        specs = [replace(spec, rate_bps=rates.get(spec.source_port, 0.0)) for spec in old]
        self._state.core.set_weights(weights_of(specs))
        self._health.note_event("rates_set", rates={spec.source_port: spec.rate_bps for spec in specs})
        for index, spec in enumerate(specs):
            self._state.streams[index].spec = spec
            if not self._state.is_closed and self._state.is_alive(index):
                self.pace(index)
        self._sender.pump()

    def set_priority(self, index: int, priority: int) -> None:
        """As `ConnectionTransport.set_priority` says."""
        if self._state.mstcp is None:
            raise LocalProtocolError("a plain TCP connection has one stream: there is nothing to prefer")
        if not 0 <= index < len(self._state.streams) or not 0 <= priority < 1 << 32:
            raise LocalProtocolError(f"there is no stream {index!r} or no priority {priority!r}")
        self._state.mstcp.set_priority(index, priority, True)
        stream = self._state.streams[index]
        stream.spec = replace(stream.spec, priority=priority)
        self._health.note_event("priority_set", stream=index, priority=priority)
        self._sender.pump()

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
        slot = self._state.core.add_stream(stream_id, weight)
        if self._state.mstcp is not None:
            self._state.mstcp.set_priority(slot, stream.spec.priority, False)
            if confirm is not None:
                self._state.mstcp.expect_confirm(slot, confirm)
        # A new slot, or that of a stream that is gone.
        self._state.streams[slot : slot + 1] = [stream]
        gone = ~(1 << slot)
        self._state.ended_streams &= gone
        self._state.shut_streams &= gone
        self._state.removed_streams &= gone
        self._state.information["sockets"] = tuple(each.sock for each in self._state.streams)
        self.pace(slot)
        if not self.is_started:
            return
        self._health.note_event("stream_added", stream=slot, source_port=stream.spec.source_port)
        self._receiver.watch_reading()
        self._receiver.expect_decrypted(slot, stream)
        self._sender.pump()

    def greet(self) -> None:
        """Say the first hello, with what was written."""
        if self._has_greeted or self._state.is_closed:
            return
        if self.is_opening and self._state.mstcp is not None and self._state.is_alive(0):
            self._has_greeted = True
            stream, nonce = self._state.streams[0], secrets.token_bytes(NONCE_BYTES)
            self._state.mstcp.greet(nonce, stream.spec.priority, sockets.first_flight_bytes(stream.sock))
            self._sender.pump()

    def replace_first(self, stream: OpenStream, confirm: bytes | None = None) -> None:
        """Have another path say the first hello, or be the one on which it came; see `add_stream`."""
        if self._state.is_alive(0):
            self._let_go(0, self._state.core.stream_end(0), "the first hello was not answered in time")
        self.add_stream(stream, 0, confirm)
        self._has_greeted = False
        if self.is_started:
            self.greet()

    @property
    def client(self) -> _core.Client | None:
        """What makes further hellos, once the first was answered."""
        return None if self._state.mstcp is None else self._state.mstcp.client()

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the client has not yet shown that the first hello was its own."""
        return self._state.mstcp is not None and self._state.mstcp.is_unconfirmed

    def remove_stream(self, index: int) -> None:
        """As `ConnectionTransport.remove_stream` says."""
        if self._state.mstcp is None:
            raise LocalProtocolError("a plain TCP connection has one stream: close the connection")
        self._state.mstcp.remove_stream(index)
        self._state.removed_streams |= 1 << index
        self._health.note_event("stream_removed", stream=index)
        self._sender.pump()

    def take_early(self, data: bytes) -> None:
        """Give the protocol the bytes that came with the client's hello."""
        assert self._state.mstcp is not None, "plain TCP has no hello"
        self._state.mstcp.early(data)
        self._receiver.deliver()
        self._sender.pump()

    def drop(self, stream: int, error: OSError | None) -> None:
        """Go on without a stream; its frames go over the others."""
        reason = "the stream ended: the peer vanished or the path broke"
        if error is not None:
            reason = error.strerror or str(error)
        self._let_go(stream, self._state.core.stream_end(stream), reason)
        self.take_events()
        self._sender.pump()

    def _let_go(self, stream: int, proper: bool, reason: str) -> None:
        """Close the socket of a stream that is gone, and have it opened again if it should not be."""
        sock, spec = self._state.streams[stream].sock, self._state.streams[stream].spec
        self._watching.forget(stream)
        if proper or self._state.removed_streams >> stream & 1:
            if proper:
                self._lost_reason = ConnectionLost("the peer has closed the connection")
                sock.close()
            else:
                sockets.reset(sock)
            if self.on_stream_ended is not None and not self._state.is_closed:
                self.on_stream_ended(spec)
            return
        self._lost_reason = ConnectionLost(reason, stream)
        self._health.note_event("stream_lost", stream=stream, reason=reason)
        sockets.reset(sock)
        if self._on_stream_lost is not None and not self._state.is_closed:
            self._on_stream_lost(spec)

    def take_events(self) -> None:
        """Do what the core says has happened."""
        if self._state.mstcp is None or self._state.is_closed:
            return
        self.act_on(self._state.mstcp.events())

    def act_on(self, events: Sequence[tuple[str, int]]) -> None:
        """Do what these events of the core mean."""
        for kind, value in events:
            if self._state.is_closed:
                return
            if kind == "opened":
                self.is_opening = False
                if self._on_opened is not None:
                    self._on_opened()
            elif kind == "gone":
                self._let_go(value, False, "nothing came through it any more")
            elif kind == "delivered":
                self._finish(None, reset=False)
            elif kind == "undelivered":
                reason = f"closed before the peer had everything: {value} bytes were not delivered"
                self._finish(ConnectionLost(reason), reset=True)
            elif kind == "lost":
                self._finish(self._lost_reason, reset=True)
            else:
                self._health.note_event(f"stream_{kind}", stream=value)
