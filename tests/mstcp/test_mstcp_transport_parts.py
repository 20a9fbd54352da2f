"""The parts of a connection's transport, each by itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mstcp import ConnectionTransport, LocalProtocolError, StreamSpec, _core, sockets
from mstcp.open_stream import OpenStream
from mstcp.transport.health import Health
from mstcp.transport.receiving import Receiver
from mstcp.transport.sending import Sender
from mstcp.transport.state import Setup, State
from mstcp.transport.watching import Watching
from tests.fakes.tcp_pair import connected

PAYLOAD_BYTES = 1448


class Taking(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def data_received(self, data: bytes) -> None:
        self.told.append(data)

    def eof_received(self) -> None:
        self.told.append("end")

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")


class Course:
    """Notes what becomes of the connection, which ends when its stream is lost."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.state: State | None = None

    def lose(self, _stream: int, _error: OSError) -> None:
        assert self.state is not None
        self.state.is_closed = True
        self.told.append("lose")

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self.told.append(name)


class Plain:
    """A plain connection over a pair of sockets, and the parts that every test needs."""

    def __init__(self) -> None:
        ours, self.theirs = connected()
        ours.setblocking(False)
        self.protocol = Taking()
        self.course: Any = Course()
        core = _core.Connection.plain(PAYLOAD_BYTES, send_queue_bytes=1 << 24)
        streams = [OpenStream(ours, StreamSpec())]
        self.setup = Setup(asyncio.get_running_loop(), self.protocol, core, streams, PAYLOAD_BYTES)
        self.state = self.course.state = State(self.setup)
        self.watching = Watching(
            self.state,
            on_readable=lambda stream: self.receiver.on_readable(stream),
            on_writable=lambda stream: self.sender.on_writable(stream),
        )
        self.sender = Sender(
            self.setup,
            self.state,
            self.watching,
            lose=self.course.lose,
            on_timer=self.course.on_timer,
            on_room=self.course.on_room,
        )
        self.receiver = Receiver(self.state, self.watching, self.sender, self.course)

    def close(self) -> None:
        self.watching.forget_all()
        for end in (self.state.streams[0].sock, self.theirs):
            end.close()


@pytest.fixture
async def plain() -> AsyncIterator[Plain]:
    plain = Plain()
    plain.sender.pace(0)
    yield plain
    plain.close()


def test_the_transport_is_made_of_parts_and_no_chain_of_classes() -> None:
    ours = [base for base in ConnectionTransport.__mro__ if base.__module__.startswith("mstcp")]
    assert ours == [ConnectionTransport]


async def test_the_loop_watches_what_is_wanted(plain: Plain) -> None:
    watching = plain.watching
    watching.watch_readers(1)
    watching.watch_writer(0)
    assert (watching.readers, watching.writers) == (1, 1)
    loop, descriptor = asyncio.get_running_loop(), plain.state.streams[0].descriptor
    watching.forget_all()
    assert (watching.readers, watching.writers) == (0, 0)
    assert not loop.remove_reader(descriptor)
    assert not loop.remove_writer(descriptor)
    # While threads have the sockets the loop watches none for room.
    plain.state.is_lent = True
    watching.watch_writer(0)
    assert watching.writers == 0


async def test_the_sender_holds_the_protocol_back_while_much_is_queued(plain: Plain) -> None:
    sender, data = plain.sender, bytes(1 << 22)
    sender.high_water, sender.low_water = 1 << 16, 1 << 14
    plain.state.core.write(data)
    sender.pump()
    assert plain.protocol.told == ["pause"]
    came, loop = 0, asyncio.get_running_loop()
    plain.theirs.setblocking(False)
    while came < len(data):
        came += len(await loop.sock_recv(plain.theirs, 1 << 20))
    assert plain.protocol.told == ["pause", "resume"]
    assert plain.course.told == ["on_room"]


async def test_the_sender_tells_of_a_stream_that_broke(plain: Plain) -> None:
    sockets.reset(plain.theirs)
    while plain.state.streams[0].host:
        await asyncio.sleep(0.01)
    plain.state.core.write(b"lost")
    plain.sender.pump()
    assert plain.course.told == ["lose"]


async def test_the_receiver_gives_the_protocol_bytes_and_their_end(plain: Plain) -> None:
    plain.receiver.watch_reading()
    plain.theirs.send(b"hello")
    plain.theirs.shutdown(socket.SHUT_WR)
    while "end" not in plain.protocol.told:
        await asyncio.sleep(0)
    assert plain.protocol.told == [b"hello", "end"]
    assert plain.course.told == ["close"]
    assert plain.watching.readers == 0


async def test_figures_need_no_other_part(plain: Plain) -> None:
    sent: list[None] = []
    health = Health(plain.state, pump=lambda: sent.append(None))
    assert [stream.index for stream in health.streams()] == [0]
    assert health.counters().queued_bytes == 0
    for wrong in ((0.001, 3), (1.0, 0)):
        with pytest.raises(LocalProtocolError):
            health.set_keepalive(*wrong)
    health.end()
