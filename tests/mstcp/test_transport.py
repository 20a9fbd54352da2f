"""What the transport makes of its driver's actions, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from mstcp import ConnectionLost, LocalProtocolError, StreamSpec, sockets
from mstcp.open_stream import OpenStream
from tests.fakes.tcp_pair import connected
from tests.fakes.transport import Raw
from tests.fakes.waiting import until


class Taking(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def data_received(self, data: bytes) -> None:
        self.told.append(data)

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(exc)


class Ends:
    """A connection whose lost streams and end are noted."""

    def __init__(self) -> None:
        self.released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost: list[StreamSpec] = []
        self.protocol = Taking()
        self.raw = Raw(self.protocol, on_closed=lambda: self.released, reconnect_s=0.05)
        self.transport, self.membership = self.raw.transport, self.raw.transport.membership
        self.membership.on_lost = lambda spec, _: self.lost.append(spec)
        for at, stream in enumerate(self.transport.shell.streams):
            stream.spec = replace(stream.spec, source_port=5001 + at)


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    ends = Ends()
    yield ends
    ends.raw.close()
    if not ends.released.done():
        ends.released.set_result(None)
    await ends.transport.wait_closed()


def is_reset(sock: Any) -> bool:
    sock.settimeout(10)
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        return True
    return False


async def test_a_stream_that_joins_takes_the_place_of_one_that_is_gone(ends: Ends) -> None:
    ends.transport.start()
    sockets.reset(ends.raw.theirs[0])
    await until(lambda: ends.lost)
    assert [spec.source_port for spec in ends.lost] == [5001]
    ours, theirs = connected()
    with theirs:
        ours.setblocking(False)
        joins = OpenStream(ours, StreamSpec(5003))
        ends.membership.add_stream(joins, 2)
        assert ends.membership.open_streams[0] is joins
        assert ends.membership.open_ports == {5002, 5003}
        assert ends.transport.get_extra_info("sockets") == (ours, ends.membership.open_streams[1].sock)
        ends.transport.set_rates({5002: 3e6})
        assert [stream.rate_bps for stream in ends.transport.streams()] == [0.0, 3e6]
        for index, priority in ((2, 0), (-1, 0), (0, -1), (0, 1 << 32)):
            with pytest.raises(LocalProtocolError):
                ends.transport.set_priority(index, priority)


async def test_the_protocol_is_told_why_once_and_after_the_allocation_is_back(ends: Ends) -> None:
    ends.transport.start()
    for sock in ends.raw.theirs:
        sockets.reset(sock)
    await until(lambda: ends.transport.is_closed)
    ends.transport.abort()
    waiting = asyncio.create_task(ends.transport.wait_closed())
    await asyncio.sleep(0)
    assert not waiting.done() and ends.protocol.told == []
    ends.released.set_result(None)
    await waiting
    (error,) = ends.protocol.told
    assert isinstance(error, ConnectionLost) and error.stream is not None
    assert error is ends.transport.lost


async def test_abort_resets_all_streams_though_the_loop_never_watched_them(ends: Ends) -> None:
    ends.transport.abort()
    assert all(is_reset(sock) for sock in ends.raw.theirs)
    assert all(stream.sock.fileno() < 0 for stream in ends.membership.open_streams)


async def test_a_writer_is_held_back_and_goes_on(ends: Ends) -> None:
    ends.transport.start()
    ends.transport.set_write_buffer_limits(high=1 << 16)
    ends.transport.write(bytes(1 << 19))
    if ends.transport.get_write_buffer_size() <= 1 << 16:
        ends.transport.write(bytes(1 << 19))
    assert ends.protocol.told == ["pause"]
    await until(lambda: ends.raw.is_told() or "resume" in ends.protocol.told)
    assert ends.protocol.told == ["pause", "resume"]


async def test_the_loop_leaves_the_sockets_to_threads_and_has_them_back(ends: Ends) -> None:
    shell = ends.transport.shell
    ends.transport.start()
    watched = {stream.sock for stream in shell.streams if stream.is_read}
    shell.core.stand_by(True)
    shell.apply()
    assert len(watched) == 2 and not any(stream.is_read for stream in shell.streams)
    shell.take_back()
    assert watched == {stream.sock for stream in shell.streams if stream.is_read}
