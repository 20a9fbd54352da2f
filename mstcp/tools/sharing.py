"""Connections that share one MSTCP connection, and so its streams and their rates, as they send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mstcp.errors import ConnectionLost, RemoteProtocolError
from mstcp.tools.channels import MAX_CHANNELS, WINDOW_BYTES, Channels, Kind, Received
from mstcp.tools.relay import Pair, keep_alive

CHANNEL_LIMIT_BYTES = 1 << 17
"""Buffer limit of a channel's reader."""
_WAITING_BYTES = 1 << 14
"""Bytes taken from the channels that may wait: the next channel's turn comes soon."""
_GRANTED_BYTES = WINDOW_BYTES // 4
"""The peer is granted this much again once it has been read."""
_READ_BYTES = 1 << 16

OnOpened = Callable[["Channel", bytes], None]


class Channel(asyncio.Transport):
    """One connection within the shared one; asyncio's streams work on it.

    Args:
        shared: The shared connection.
        number: The channel's.

    Attributes:
        answer: The peer's answer to what was asked of it when the channel was opened.
        pair: Its reader and writer.
    """

    def __init__(self, shared: SharedConnection, number: int) -> None:
        super().__init__()
        self._shared = shared
        self._number = number
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[bytes] = self._loop.create_future()
        self._is_paused = False
        self._is_closing = False
        self._is_closed = False
        self._reading_paused = False
        # Received while the reader pauses, and not granted to the peer again.
        self._withheld_bytes = 0
        reader = asyncio.StreamReader(limit=CHANNEL_LIMIT_BYTES)
        self._protocol = asyncio.StreamReaderProtocol(reader)
        self._protocol.connection_made(self)
        self.pair: Pair = reader, asyncio.StreamWriter(self, self._protocol, reader, self._loop)

    # --- asyncio.Transport ----------------------------------------------------------------------------------
    def is_closing(self) -> bool:
        """Return whether it is closing or closed."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Grant the peer nothing more until `resume_reading`."""
        self._reading_paused = True

    def resume_reading(self) -> None:
        """Grant the peer what came meanwhile."""
        self._reading_paused = False
        self._grant(0)

    def write(self, data: Any) -> None:
        """Queue bytes."""
        self._shared.channels.write(self._number, data)
        self._shared.wake()
        if not self._is_paused and self._shared.channels.queued_bytes(self._number) > CHANNEL_LIMIT_BYTES:
            self._is_paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        """Return True: half-close works."""
        return True

    def write_eof(self) -> None:
        """Send the end after what is queued."""
        self._shared.channels.end(self._number)
        self._shared.wake()

    def close(self) -> None:
        """Send what is queued and the end; what comes is thrown away."""
        if not self._is_closing:
            self._is_closing = True
            self.write_eof()
            self.note_sent()

    def abort(self) -> None:
        """Break the channel."""
        self._shared.channels.reset(self._number)
        self._shared.wake()
        self.lose(None)

    # --- opening --------------------------------------------------------------------------------------------
    def respond(self, answer: bytes, *, refuses: bool) -> None:
        """Answer the peer, which opened the channel."""
        self._shared.channels.answer(self._number, answer, refuses=refuses)
        self._shared.wake()
        if refuses:
            self.lose(None)

    # --- what the shared connection tells -------------------------------------------------------------------
    def take(self, what: Received) -> None:
        """Take what the peer has said."""
        if what.kind is Kind.DATA:
            if not self._is_closing:
                self._protocol.data_received(what.data)
            self._grant(len(what.data))
        elif what.kind is Kind.END:
            self._protocol.eof_received()
        elif what.kind is Kind.ANSWER and not self.answer.done():
            self.answer.set_result(what.data)
        elif what.kind is Kind.RESET:
            self.lose(ConnectionLost("the peer broke the connection"))

    def _grant(self, count: int) -> None:
        self._withheld_bytes += count
        is_taken = self._is_closing or not self._reading_paused
        if is_taken and self._withheld_bytes >= _GRANTED_BYTES:
            self._shared.channels.grant(self._number, self._withheld_bytes)
            self._withheld_bytes = 0
            self._shared.wake()

    def note_sent(self) -> None:
        """Go on after bytes of the queue have left."""
        queued_bytes = self._shared.channels.queued_bytes(self._number)
        if self._is_paused and queued_bytes <= CHANNEL_LIMIT_BYTES // 4:
            self._is_paused = False
            self._protocol.resume_writing()
        if self._is_closing and not queued_bytes:
            self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """Tell who uses the channel that it is over."""
        self._is_closing = True
        if not self._is_closed:
            self._is_closed = True
            self._shared.forget(self._number)
            if not self.answer.done():
                self.answer.set_exception(error or ConnectionLost("the connection was given up"))
                self.answer.exception()  # nobody need await it
            self._loop.call_soon(self._protocol.connection_lost, error)


class SharedConnection:
    """One side of an MSTCP connection that carries channels.

    Args:
        pair: The connection.
        on_opened: Told of each channel that the peer opens, and what it asks for; None: this side opens them.
    """

    def __init__(self, pair: Pair, on_opened: OnOpened | None = None) -> None:
        self.channels = Channels(opens=on_opened is None)
        self._reader, self._writer = pair
        self._writer.transport.set_write_buffer_limits(_WAITING_BYTES)
        keep_alive(pair)
        self._on_opened = on_opened
        self._open: dict[int, Channel] = {}
        self._awake = asyncio.Event()
        self._sending = asyncio.ensure_future(self._send())
        self._receiving = asyncio.ensure_future(self._receive())

    @property
    def is_over(self) -> bool:
        """Whether it carries nothing any more."""
        return self._receiving.done() or self._sending.done()

    def open(self, request: bytes) -> Channel:
        """Open a channel; its `answer` is the peer's."""
        number = self.channels.open(request)
        channel = self._open[number] = Channel(self, number)
        self.wake()
        return channel

    def wake(self) -> None:
        """Note that there may be something to send."""
        self._awake.set()

    def forget(self, number: int) -> None:
        """Tell a channel nothing more."""
        self._open.pop(number, None)

    async def run(self) -> None:
        """Carry channels until the connection ends.

        Raises:
            ConnectionLost: It broke.
            RemoteProtocolError: The peer broke the protocol.
        """
        try:
            await asyncio.wait((self._sending, self._receiving), return_when=asyncio.FIRST_COMPLETED)
            for task in (self._receiving, self._sending):
                if task.done() and (error := task.exception()) is not None:
                    raise error
        finally:
            self._sending.cancel()
            self._receiving.cancel()
            for channel in list(self._open.values()):
                channel.lose(ConnectionLost("the connection that carried it is over"))

    async def close(self) -> None:
        """Send what the channels have left, and close the connection; for when `run` has ended."""
        while (frame := self.channels.poll()) is not None:
            self._writer.write(frame[0])
        self._writer.close()
        await self._writer.wait_closed()

    async def _send(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            while (frame := self.channels.poll()) is not None:
                data, number = frame
                self._writer.write(data)
                if number is not None and (channel := self._open.get(number)) is not None:
                    channel.note_sent()
                await self._writer.drain()

    async def _receive(self) -> None:
        while data := await self._reader.read(_READ_BYTES):
            for what in self.channels.receive(data):
                if what.kind is Kind.OPEN:
                    self._take_open(what)
                elif (channel := self._open.get(what.channel)) is not None:
                    channel.take(what)
                elif what.kind is Kind.DATA:
                    # Its user is gone.
                    self.channels.grant(what.channel, len(what.data))
            self.wake()  # a window may have grown

    def _take_open(self, what: Received) -> None:
        assert self._on_opened is not None, "else the core refuses it"
        if len(self.channels) > MAX_CHANNELS:
            raise RemoteProtocolError(f"the peer opened more than {MAX_CHANNELS} channels at once")
        channel = self._open[what.channel] = Channel(self, what.channel)
        self._on_opened(channel, what.data)
