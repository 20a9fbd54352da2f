"""Streams that come, go and change their rates while the connection goes on."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mstcp.checks import check_ip_addresses
from mstcp.errors import ConnectionClosed, LocalProtocolError
from mstcp.stream_requests import stream_request
from mstcp.streams import StreamSpec, check_specs
from mstcp.transport.health import Health
from mstcp.transport.shell import Shell

_OWN_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
    (socket.SOL_SOCKET, getattr(socket, "SO_MAX_PACING_RATE", 47)),
    (socket.IPPROTO_TCP, getattr(socket, "TCP_NOTSENT_LOWAT", 25)),
)


class Membership(Health):
    """Which streams the connection has, and what the driver says becomes of them.

    Args:
        shell: Has the driver.

    Attributes:
        on_lost: Told of each stream that is gone, and how: see `_core.Action`.
        on_joined: Told of each stream that the driver has opened.
    """

    def __init__(self, shell: Shell) -> None:
        super().__init__(shell)
        # By level and name: what the application has set.
        self._options: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.on_lost: Callable[[StreamSpec, str], None] | None = None
        self.on_joined: Callable[[StreamSpec], None] | None = None
        for index in range(len(shell.streams)):
            self._look_after(index)

    @property
    def alive_streams(self) -> int:
        """How many streams carry bytes now."""
        return self.shell.core.alive.bit_count()

    @property
    def open_ports(self) -> frozenset[int]:
        """The source ports of the streams that are connected, those that are being taken out included."""
        alive = 0 if self.shell.is_closed else self.shell.core.alive
        return frozenset(
            stream.spec.source_port for index, stream in enumerate(self.shell.streams) if alive >> index & 1
        )

    def is_alive(self, index: int) -> bool:
        """Return whether a stream carries bytes."""
        return not self.shell.is_closed and bool(self.shell.core.alive >> index & 1)

    def _look_after(self, index: int) -> None:
        stream = self.shell.streams[index]
        if stream.spec.delay_s:
            self.shell.core.set_delay(index, round(stream.spec.delay_s * 1e9))
        self.keep_alive(stream)
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
        for index, stream in enumerate(self.shell.streams):
            if self.is_alive(index):
                stream.sock.setsockopt(*option)
        self._options[option[0], option[1]] = option

    def set_allocation(self, allocation: object) -> None:
        """Note what `get_extra_info("allocation")` returns."""
        self.shell.information["allocation"] = allocation

    def set_rates(self, rates: Mapping[int, float]) -> None:
        """Give running streams new rates: the weights of the draw and the pacing.

        Args:
            rates: Goodput in bit/s by source port; streams that are not named get 0 and carry no new frames.

        Raises:
            LocalProtocolError: No stream of the connection is left with a rate.
        """
        shell = self.shell
        specs = {stream.number: stream.spec for stream in shell.streams} | shell.specs
        specs = {
            number: replace(spec, rate_bps=rates.get(spec.source_port, 0.0))
            for number, spec in specs.items()
            if spec.source_port
        }
        shell.core.set_rates(time.monotonic_ns(), [(number, spec.rate_bps) for number, spec in specs.items()])
        self.note_event("rates_set", rates={spec.source_port: spec.rate_bps for spec in specs.values()})
        for stream in shell.streams:
            stream.spec = specs.get(stream.number, stream.spec)
        shell.specs |= {number: specs[number] for number in shell.specs.keys() & specs}
        shell.apply()

    def set_priority(self, index: int, priority: int) -> None:
        """Use a stream by this priority from now on, in both directions.

        The streams of the lowest value that work carry everything; others are their backup.

        Args:
            index: The stream's.
            priority: 0 to 255.

        Raises:
            LocalProtocolError: There is no such stream or priority, or the connection is plain TCP.
        """
        if self.shell.is_plain:
            raise LocalProtocolError("a plain TCP connection has one stream: there is nothing to prefer")
        if not 0 <= index < len(self.shell.streams) or not 0 <= priority < 1 << 32:
            raise LocalProtocolError(f"there is no stream {index!r} or no priority {priority!r}")
        self.shell.core.set_priority(index, priority)
        stream = self.shell.streams[index]
        stream.spec = replace(stream.spec, priority=priority)
        self.note_event("priority_set", stream=index, priority=priority)
        self.shell.settle()

    def note_joined(self, index: int) -> None:
        """Use a stream that the driver has opened."""
        spec = self.shell.streams[index].spec
        self._look_after(index)
        self.note_event("stream_added", stream=index, source_port=spec.source_port)
        if self.on_joined is not None:
            self.on_joined(spec)

    async def add_stream(self, spec: StreamSpec) -> int:
        """Open a further stream of a client, and again whenever it is lost.

        Args:
            spec: From where to where, and how it is used; without addresses as the connection's.

        Returns:
            Its index, for `remove_stream` and `set_priority`, once it carries bytes.

        Raises:
            LocalProtocolError: This is the server's end or plain TCP, or the spec makes no sense.
            ConnectionClosed: The connection ended before.
            OSError: It cannot be opened; it is not tried again.
        """
        check_specs([spec])
        if self.shell.is_plain or not self.shell.is_client:
            what = "a plain TCP connection has one" if self.shell.is_plain else "the client adds them"
            raise LocalProtocolError(f"no stream can be added: {what}")
        if self.shell.is_closing:
            raise ConnectionClosed("the connection was closed: no stream can be added")
        family = self.shell.streams[0].sock.family
        return await self.shell.add(stream_request(spec, family, None), spec)

    def announce(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Announce to the client at which further addresses this server accepts streams.

        Those that were announced before and are missing are withdrawn: the client removes its streams there.

        Args:
            addresses: Pairs of IP address and port, 16 at most.

        Raises:
            LocalProtocolError: They are none, too many, or this is the client's end.
        """
        check_ip_addresses("addresses", addresses)
        self.shell.core.announce(time.monotonic_ns(), addresses)
        self.shell.apply()

    def network_changed(self) -> None:
        """Learn that this host's addresses or routes have changed, where the system does not tell.

        Streams from addresses that are gone are lost, and those to be opened are tried at once, from whatever
        address the system chooses where none was named. On Linux changes of addresses are noticed anyway.
        """
        if not self.shell.is_closed:
            self.shell.core.network_changed(time.monotonic_ns())
            self.shell.apply()

    def remove_stream(self, index: int) -> None:
        """Remove a stream while the others go on; nothing is lost, and it is not opened again.

        It gets no new frames, and ends when the peer has reported those it took.

        Raises:
            LocalProtocolError: There is no such stream, or it is the last.
        """
        if self.shell.is_plain:
            raise LocalProtocolError("a plain TCP connection has one stream: close the connection")
        if not 0 <= index < len(self.shell.streams):
            raise LocalProtocolError(f"there is no stream {index!r}")
        number = self.shell.streams[index].number
        self.shell.core.remove_stream(time.monotonic_ns(), number)
        self.shell.specs.pop(number, None)
        self.note_event("stream_removed", stream=index)
        self.shell.apply()

    def note_lost(self, index: int, loss: str) -> None:
        """Tell who follows the streams."""
        if self.on_lost is not None and not self.shell.is_closed:
            self.on_lost(self.shell.streams[index].spec, loss)
