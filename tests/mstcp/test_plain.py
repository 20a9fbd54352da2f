"""Plain TCP behind the core's interface: the same bytes, however the socket takes and gives them."""

from __future__ import annotations

import select
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mstcp import BufferLimitExceeded, LocalProtocolError, RemoteProtocolError, _core
from tests.fakes.tcp_pair import connected
from tests.fakes.waiting import wait_until


def plain(send_queue_bytes: int = 1 << 30, *, is_decided: bool = True) -> _core.Connection:
    return _core.Connection.plain(1440, send_queue_bytes=send_queue_bytes, is_decided=is_decided)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=50_000), max_size=5), st.integers(1, 5000))
def test_bytes_come_through_as_they_are_and_each_direction_ends_by_itself(
    writes: list[bytes], take: int
) -> None:
    ours, theirs = connected()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
        ours.setblocking(False)
        core = plain()
        number = core.attach(0, ours.fileno(), None)
        assert core.readable(0, number, True) == []
        theirs.sendall(b"ping")
        theirs.shutdown(socket.SHUT_WR)
        wait_until(lambda: select.select([ours], [], [], 0)[0], "the bytes")
        assert core.readable(0, number, True) == [b"ping"]
        assert core.readable(0, number, True) == [] and core.ended
        assert core.alive == 1
        for data in writes:
            core.write(data)
        core.end(0)
        wire = b""
        while piece := theirs.recv(take):
            wire += piece
            core.writable(0, number)
        assert wire == b"".join(writes)
        assert core.queued_bytes == 0 and core.counters().streams[0][1] == len(wire)
        core.close(0)
        assert [action.kind for action in core.actions()][-2:] == ["unwatch", "ended"]


@given(st.lists(st.binary(min_size=1, max_size=12)))
def test_bytes_that_are_no_hello_pass_through(pieces: list[bytes]) -> None:
    core = plain(is_decided=False)
    pieces = [b"\x93MS", *pieces, b" this is no hello"]
    for piece in pieces:
        core.receive(0, piece)
    assert core.ready_bytes == len(b"".join(pieces))
    assert b"".join(core.take()) == b"".join(pieces)


def test_a_late_hello_is_refused_however_it_is_cut() -> None:
    for cut in range(1, 8):
        core = plain(is_decided=False)
        core.receive(0, _core.MAGIC[:cut])
        assert core.ready_bytes == 0
        with pytest.raises(RemoteProtocolError, match="already treated as plain TCP"):
            core.receive(0, _core.MAGIC[cut:])


def test_what_might_have_been_a_hello_comes_through_when_nothing_follows() -> None:
    for cut in range(8):
        core = plain(is_decided=False)
        core.receive(0, _core.MAGIC[:cut])
        core.stream_end(0, 0)
        assert b"".join(core.take()) == _core.MAGIC[:cut] and core.ended


def test_a_stream_is_not_read_while_much_waits_for_the_application() -> None:
    ours, theirs = connected()
    with ours, theirs:
        core = plain()
        number = core.attach(0, ours.fileno(), None)
        core.stand_by(False)

        def is_watched() -> bool:
            core.settle(0)
            return [action.for_bytes for action in core.actions() if action.kind == "watch"] == [True]

        assert is_watched()
        core.receive(0, bytes(1 << 20))
        core.settle(0)
        told = [(action.socket, action.for_bytes) for action in core.actions() if action.kind == "watch"]
        assert told == [(number, False)]
        core.take()
        assert is_watched()


def test_the_queue_is_bounded_but_an_empty_one_takes_any_write() -> None:
    core = plain(100)
    core.write(bytes(500))
    with pytest.raises(BufferLimitExceeded):
        core.write(b"x")
    core.end(0)
    with pytest.raises(LocalProtocolError):
        core.write(b"x")


def test_a_plain_connection_has_one_stream() -> None:
    with pytest.raises(LocalProtocolError, match="one stream"):
        plain().add_stream(1, 1.0)
