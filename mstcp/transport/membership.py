"""Streams that come, go and change their rates while the connection goes on."""

from __future__ import annotations

import errno
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mstcp import _core, sockets
from mstcp.errors import LocalProtocolError
from mstcp.hello import NONCE_BYTES
from mstcp.open_stream import OpenStream
from mstcp.streams import UNLIMITED_BPS, StreamSpec, weights_of
from mstcp.transport.defaults import USER_TIMEOUT_S
from mstcp.transport.health import Health
from mstcp.transport.setup import Setup
from mstcp.transport.shell import Shell

_OWN_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
    (socket.SOL_SOCKET, getattr(socket, "SO_MAX_PACING_RATE", 47)),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_NOTSENT_LOWAT", 25)),
)
_CLOSE_S = 30.0
"""How long a closed connection waits while the peer takes nothing more."""


class Membership:
    """Which streams the connection has, and what the driver says becomes of them.

    Args:
        setup: Of the connection.
        shell: Has the driver.
        health: Looks after the streams.

    Attributes:
        is_started: The protocol has been told of the connection.
        is_opening: The first hello has not been answered.
        on_stream_ended: Told of each stream that ended as it should, or was removed.
    """

    def __init__(self, setup: Setup, shell: Shell, health: Health) -> None:
        self._shell = shell
        self._health = health
        self._on_stream_lost = setup.on_stream_lost
        # By level and name: what the application has set.
        self._options: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.is_started = False
        self.is_opening = setup.on_opened is not None
        self._has_greeted = False
        self.on_stream_ended: Callable[[StreamSpec], None] | None = None
        shell.on_opened, self._on_opened = self._opened, setup.on_opened
        shell.on_lost = self._lost
        shell.on_joined = self._joined
        if not shell.is_plain:
            shell.core.set_timeouts(round(setup.reconnect_s * 1e9), round(_CLOSE_S * 1e9))
        # The driver knows what came on those that it opened itself.
        self._attached = len(setup.streams)
        for index in range(self._attached):
            self._attach(index)
        for index in range(self._attached, len(shell.streams)):
            self._look_after(index)

    def start(self) -> None:
        """Have the sockets watched; what the application writes first goes with the first hello."""
        self.is_started = True
        for index in range(self._attached):
            self._shell.receive_early(index)
        self._shell.core.stand_by(False)
        self._shell.settle()
        if self.is_opening:
            self._shell.loop.call_soon(self.greet)

    @property
    def open_streams(self) -> tuple[OpenStream, ...]:
        """The streams as they were added, those that are gone included."""
        return tuple(self._shell.streams)

    @property
    def alive_streams(self) -> int:
        """How many streams carry bytes now."""
        return self._shell.core.alive.bit_count()

    @property
    def open_ports(self) -> frozenset[int]:
        """The source ports of the streams that are connected, those that are being taken out included."""
        alive = 0 if self._shell.is_closed else self._shell.core.alive
        return frozenset(
            stream.spec.source_port for index, stream in enumerate(self._shell.streams) if alive >> index & 1
        )

    def is_alive(self, index: int) -> bool:
        """Return whether a stream carries bytes."""
        return not self._shell.is_closed and bool(self._shell.core.alive >> index & 1)

    def _attach(self, index: int) -> None:
        """Have a stream keep to its rate, and be looked after."""
        stream = self._shell.streams[index]
        if not self._shell.is_plain:
            sockets.set_user_timeout(stream.sock, USER_TIMEOUT_S)
        self._shell.core.set_delay(index, _delay_ns(stream.spec))
        self._shell.attach(index)
        self._look_after(index)

    def _look_after(self, index: int) -> None:
        stream = self._shell.streams[index]
        self._health.keep_alive(stream)
        for option in self._options.values():
            stream.sock.setsockopt(*option)

    def set_option(self, option: tuple[Any, ...]) -> None:
        """Set an option, as for `socket.setsockopt`, on the sockets of all streams, also of later ones.

        Raises:
            OSError: The system refuses it, or the library sets it itself.
        """
        if option[:2] in _OWN_OPTIONS:
            what = "the library sets this option itself (rates, and what may wait in the sockets)"
            raise OSError(errno.ENOPROTOOPT, what)
        for index, stream in enumerate(self._shell.streams):
            if self.is_alive(index):
                stream.sock.setsockopt(*option)
        self._options[option[0], option[1]] = option

    def set_allocation(self, allocation: object) -> None:
        """Note what `get_extra_info("allocation")` returns."""
        self._shell.information["allocation"] = allocation

    def set_rates(self, rates: Mapping[int, float]) -> None:
        """As `ConnectionTransport.set_rates` says."""
        old = [stream.spec for stream in self._shell.streams]
        specs = [replace(spec, rate_bps=rates.get(spec.source_port, 0.0)) for spec in old]
        self._shell.core.set_weights(weights_of(specs))
        self._health.note_event("rates_set", rates={spec.source_port: spec.rate_bps for spec in specs})
        for index, spec in enumerate(specs):
            self._shell.streams[index].spec = spec
            if self.is_alive(index):
                self._shell.core.set_delay(index, _delay_ns(spec))
                self._shell.core.pace(index, spec.rate_bps)
        self._shell.settle()

    def set_priority(self, index: int, priority: int) -> None:
        """As `ConnectionTransport.set_priority` says."""
        if self._shell.is_plain:
            raise LocalProtocolError("a plain TCP connection has one stream: there is nothing to prefer")
        if not 0 <= index < len(self._shell.streams) or not 0 <= priority < 1 << 32:
            raise LocalProtocolError(f"there is no stream {index!r} or no priority {priority!r}")
        self._shell.core.set_priority(index, priority, True)
        stream = self._shell.streams[index]
        stream.spec = replace(stream.spec, priority=priority)
        self._health.note_event("priority_set", stream=index, priority=priority)
        self._shell.settle()

    def add_stream(self, stream: OpenStream, stream_id: int) -> None:
        """Use a further stream, whose hellos are done.

        Args:
            stream: The stream.
            stream_id: Its id in the connection.

        Raises:
            LocalProtocolError: The connection is plain TCP or has 64 streams.
        """
        weight = UNLIMITED_BPS if stream.spec.rate_bps is None else stream.spec.rate_bps
        slot = self._shell.core.add_stream(stream_id, weight)
        if not self._shell.is_plain:
            self._shell.core.set_priority(slot, stream.spec.priority, False)
        # A new slot, or that of a stream that is gone.
        self._shell.streams[slot : slot + 1] = [stream]
        self._shell.information["sockets"] = tuple(each.sock for each in self._shell.streams)
        self._attach(slot)
        if not self.is_started:
            return
        self._health.note_event("stream_added", stream=slot, source_port=stream.spec.source_port)
        self._shell.receive_early(slot)
        self._shell.settle()

    def _joined(self, index: int) -> None:
        """Use a stream that the driver has opened."""
        self._look_after(index)
        port = self._shell.streams[index].spec.source_port
        self._health.note_event("stream_added", stream=index, source_port=port)

    def greet(self) -> None:
        """Say the first hello, with what was written."""
        if self._has_greeted or self._shell.is_closed:
            return
        if self.is_opening and not self._shell.is_plain and self.is_alive(0):
            self._has_greeted = True
            stream, nonce = self._shell.streams[0], secrets.token_bytes(NONCE_BYTES)
            self._shell.core.greet(nonce, stream.spec.priority, sockets.first_flight_bytes(stream.sock))
            self._shell.settle()

    def replace_first(self, stream: OpenStream) -> None:
        """Have another path say the first hello; see `add_stream`."""
        if self.is_alive(0):
            self._shell.core.drop_stream(time.monotonic_ns(), 0)
            self._shell.apply()
        self.add_stream(stream, 0)
        self._has_greeted = False
        if self.is_started:
            self.greet()

    @property
    def client(self) -> _core.Client | None:
        """What makes further hellos, once the first was answered."""
        return None if self._shell.is_plain else self._shell.core.client()

    def remove_stream(self, index: int) -> None:
        """As `ConnectionTransport.remove_stream` says."""
        if self._shell.is_plain:
            raise LocalProtocolError("a plain TCP connection has one stream: close the connection")
        self._shell.core.remove_stream(time.monotonic_ns(), index)
        self._health.note_event("stream_removed", stream=index)
        self._shell.apply()

    def _lost(self, index: int, loss: str) -> None:
        """Have a stream that is gone opened again, if it should be."""
        spec = self._shell.streams[index].spec
        told = self.on_stream_ended if loss in ("finished", "removed") else self._on_stream_lost
        if told is not None and not self._shell.is_closed:
            told(spec)

    def _opened(self) -> None:
        self.is_opening = False
        if self._on_opened is not None:
            self._on_opened()


def _delay_ns(spec: StreamSpec) -> int:
    return round((spec.delay_s or 0.0) * 1e9)
