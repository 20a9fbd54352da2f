"""Streams that come, go and change their rates while the connection goes on."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mstcp import network
from mstcp.asked import ask
from mstcp.checks import check_ip_addresses
from mstcp.errors import ConnectionClosed, LocalProtocolError
from mstcp.streams import StreamSpec, check_specs
from mstcp.transport.health import Health
from mstcp.transport.open_stream import OpenStream
from mstcp.transport.shell import Shell

_OWN_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
    (socket.SOL_SOCKET, getattr(socket, "SO_MAX_PACING_RATE", 47)),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_NOTSENT_LOWAT", 25)),
)


class Membership:
    """Which streams the connection has, and what the driver says becomes of them.

    Args:
        shell: Has the driver.
        health: Looks after the streams.

    Attributes:
        on_lost: Told of each stream that is gone, and how: see `_core.Action`.
        on_joined: Told of each stream that the driver has opened.
    """

    def __init__(self, shell: Shell, health: Health) -> None:
        self._shell = shell
        self._health = health
        # By level and name: what the application has set.
        self._options: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.on_lost: Callable[[StreamSpec, str], None] | None = None
        self.on_joined: Callable[[StreamSpec], None] | None = None
        shell.on_lost = self._lost
        shell.on_joined = self._joined
        for index in range(len(shell.streams)):
            self._look_after(index)

    def start(self) -> None:
        """Have the sockets read; what the application writes first goes with the first hello."""
        # A server's sockets may have addresses that are not this host's: those of a gateway.
        if self._shell.is_client and not self._shell.is_plain:
            network.follow(self._shell.loop, self)
        self._shell.core.start()
        self._shell.deliver()
        self._shell.settle()
        if self._shell.is_client:
            self._shell.loop.call_soon(self._greet)

    def _greet(self) -> None:
        """Have the driver say the first hello, with what was written, if it has not said it."""
        if not self._shell.is_closed:
            self._shell.core.greet(time.monotonic_ns())
            self._shell.apply()

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

    def _look_after(self, index: int) -> None:
        stream = self._shell.streams[index]
        if stream.spec.delay_s:
            self._shell.core.set_delay(index, round(stream.spec.delay_s * 1e9))
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
        shell = self._shell
        specs = {stream.number: stream.spec for stream in shell.streams} | shell.specs
        specs = {
            number: replace(spec, rate_bps=rates.get(spec.source_port, 0.0))
            for number, spec in specs.items()
            if spec.source_port
        }
        shell.core.set_rates(time.monotonic_ns(), [(number, spec.rate_bps) for number, spec in specs.items()])
        self._health.note_event(
            "rates_set", rates={spec.source_port: spec.rate_bps for spec in specs.values()}
        )
        for stream in shell.streams:
            stream.spec = specs.get(stream.number, stream.spec)
        shell.specs |= {number: specs[number] for number in shell.specs.keys() & specs}
        shell.apply()

    def set_priority(self, index: int, priority: int) -> None:
        """As `ConnectionTransport.set_priority` says."""
        if self._shell.is_plain:
            raise LocalProtocolError("a plain TCP connection has one stream: there is nothing to prefer")
        if not 0 <= index < len(self._shell.streams) or not 0 <= priority < 1 << 32:
            raise LocalProtocolError(f"there is no stream {index!r} or no priority {priority!r}")
        self._shell.core.set_priority(index, priority)
        stream = self._shell.streams[index]
        stream.spec = replace(stream.spec, priority=priority)
        self._health.note_event("priority_set", stream=index, priority=priority)
        self._shell.settle()

    def _joined(self, index: int) -> None:
        """Use a stream that the driver has opened."""
        spec = self._shell.streams[index].spec
        self._look_after(index)
        self._health.note_event("stream_added", stream=index, source_port=spec.source_port)
        if self.on_joined is not None:
            self.on_joined(spec)

    async def add_stream(self, spec: StreamSpec) -> int:
        """As `ConnectionTransport.add_stream` says."""
        check_specs([spec])
        if self._shell.is_plain or not self._shell.is_client:
            what = "a plain TCP connection has one" if self._shell.is_plain else "the client adds them"
            raise LocalProtocolError(f"no stream can be added: {what}")
        if self._shell.is_closing:
            raise ConnectionClosed("the connection was closed: no stream can be added")
        family = self._shell.streams[0].sock.family
        return await self._shell.add(ask(spec, family, None), spec)

    def announce(self, addresses: Sequence[tuple[str, int]]) -> None:
        """As `ConnectionTransport.announce` says."""
        check_ip_addresses("addresses", addresses)
        self._shell.core.announce(time.monotonic_ns(), addresses)
        self._shell.apply()

    def network_changed(self) -> None:
        """As `ConnectionTransport.network_changed` says."""
        if not self._shell.is_closed:
            self._shell.core.network_changed(time.monotonic_ns())
            self._shell.apply()

    def remove_stream(self, index: int) -> None:
        """As `ConnectionTransport.remove_stream` says."""
        if self._shell.is_plain:
            raise LocalProtocolError("a plain TCP connection has one stream: close the connection")
        if not 0 <= index < len(self._shell.streams):
            raise LocalProtocolError(f"there is no stream {index!r}")
        number = self._shell.streams[index].number
        self._shell.core.remove_stream(time.monotonic_ns(), number)
        self._shell.specs.pop(number, None)
        self._health.note_event("stream_removed", stream=index)
        self._shell.apply()

    def _lost(self, index: int, loss: str) -> None:
        if self.on_lost is not None and not self._shell.is_closed:
            self.on_lost(self._shell.streams[index].spec, loss)
