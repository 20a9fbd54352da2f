"""Streams that a controller adds to a running connection, and takes off again.

Source ports stay bound for them. After each change of the allocation, and whenever a stream has opened,
failed or closed, the controller hears the state of all.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from mstcp.control.allocation import Allocation
from mstcp.errors import LocalProtocolError, MstcpError
from mstcp.stream_requests import stream_request
from mstcp.streams import StreamSpec
from mstcp.transport import ConnectionTransport

LOGGER = logging.getLogger("mstcp")

_RETRY_S = 1.0
"""Interval of attempts to close a stream that is the last one alive."""

Report = Callable[[str, list[int], list[int], list[int]], None]


class AllocatedStreams:
    """Opens and closes streams as an allocation says.

    Args:
        loop: The event loop.
        transport: The connection.
        spare: Sockets that are bound for more, by port.
        bind: Binds another one.
        report: Tells the controller: flow id, ports of the streams that are open, of those that could not be
            opened, and those that are bound for more.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: ConnectionTransport,
        spare: dict[int, socket.socket],
        bind: Callable[[], socket.socket],
        report: Report,
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._spare = spare
        self._bind = bind
        self._report = report
        self._allocation: Allocation | None = None
        self._failed: set[int] = set()
        self._leaving: set[int] = set()
        self._again: asyncio.TimerHandle | None = None
        transport.on_lost = self._lost
        transport.on_joined = self._joined
        transport.shell.on_unreachable = self._unreachable

    def follow(self, allocation: Allocation) -> None:
        """Open the streams that are new, close those that are missing, and say how all are."""
        self._allocation = allocation
        wanted = {spec.source_port: spec for spec in allocation.streams}
        self._failed &= wanted.keys()
        open_ports = self._transport.open_ports
        for port, number in self._asked().items():
            if port not in wanted and port not in open_ports:
                self._transport.shell.forget(number)
                self._bind_another()
        for stream in self._transport.streams():
            if stream.source_port in open_ports - wanted.keys():
                self._close(stream.index, stream.source_port)
        for port, spec in wanted.items():
            if port not in self._asked().keys() | open_ports | self._failed:
                self._open(spec)
        self.tell()

    def _asked(self) -> dict[int, int]:
        """Return the numbers of the streams that are open or being opened, by port."""
        return {spec.source_port: number for number, spec in self._transport.shell.specs.items()}

    def tell(self) -> None:
        """Tell the controller how the streams are."""
        if self._allocation is not None and not self._transport.is_closing():
            open_ports = sorted(self._transport.open_ports)
            self._report(self._allocation.flow_id, open_ports, sorted(self._failed), list(self._spare))

    def _open(self, spec: StreamSpec) -> None:
        sock = self._spare.pop(spec.source_port, None)
        if sock is None:
            LOGGER.warning("no socket is bound to port %d for the stream there", spec.source_port)
            self._failed.add(spec.source_port)
            return
        try:
            self._transport.shell.dial(stream_request(spec, sock.family, None, sock).over(sock), spec)
        except (MstcpError, OSError) as error:
            sock.close()
            self._give_up(spec.source_port, error)

    def _joined(self, _: StreamSpec) -> None:
        """Use the streams by the rates of now: they may have changed while one was opened."""
        if self._allocation is not None and not self._transport.is_closing():
            self._transport.set_rates({s.source_port: s.rate_bps or 0.0 for s in self._allocation.streams})
        self.tell()

    def _unreachable(self, number: int, error: Exception | None) -> None:
        spec = self._transport.shell.specs.get(number)
        if spec is not None:
            self._transport.shell.forget(number)
            self._give_up(spec.source_port, error)
            self.tell()

    def _give_up(self, port: int, error: Exception | None) -> None:
        LOGGER.warning("the stream from port %d could not be opened: %s", port, error)
        self._failed.add(port)
        self._bind_another()

    def _close(self, index: int, port: int) -> None:
        """Take a stream out: it ends when all that was sent on it has arrived."""
        if port in self._leaving:
            return
        try:
            self._transport.remove_stream(index)
            self._leaving.add(port)
        except LocalProtocolError:
            # The others are being opened again: it carries on without a rate until one is back.
            self._again = self._again or self._loop.call_later(_RETRY_S, self._follow_again)

    def _follow_again(self) -> None:
        self._again = None
        if self._allocation is not None and not self._transport.is_closing():
            self.follow(self._allocation)

    def _lost(self, spec: StreamSpec, _: str) -> None:
        """Tell that a stream has ended for good."""
        if self._transport.is_closing() or spec.source_port not in self._leaving:
            return
        self._leaving.discard(spec.source_port)
        self._bind_another()
        # The transport is in the middle of it.
        self._loop.call_soon(self.tell)

    def _bind_another(self) -> None:
        """Bind a port in the place of one that a stream had: TCP may keep that for a minute."""
        try:
            sock = self._bind()
        except OSError as error:
            LOGGER.warning("no port could be bound for a further stream: %s", error)
            return
        self._spare[sock.getsockname()[1]] = sock

    def stop(self) -> None:
        """Follow no more, and close the bound ports."""
        self._allocation = None
        if self._again is not None:
            self._again.cancel()
        for sock in self._spare.values():
            sock.close()
        self._spare.clear()
