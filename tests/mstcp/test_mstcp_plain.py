"""Plain TCP behind the core's interface: the same bytes, however the socket takes and gives them."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mstcp import BufferLimitExceeded, LocalProtocolError, RemoteProtocolError, _core

FULL = -11
"""Of a socket: EAGAIN, as the core reports it."""


def plain(send_queue_bytes: int = 1 << 30, *, is_decided: bool = True) -> _core.Connection:
    return _core.Connection.plain(1440, send_queue_bytes=send_queue_bytes, is_decided=is_decided)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=50_000), max_size=5), st.lists(st.integers(0, 5000), min_size=1))
def test_a_socket_gets_what_was_written_however_little_it_takes(
    writes: list[bytes], takes: list[int]
) -> None:
    core = plain()
    for data in writes:
        core.write(data)
    core.end()
    wire, turn = bytearray(), 0
    while not core.finished:
        offer = core.poll(0)
        if offer is None:
            core.writable(0)
            continue
        stream, size = offer
        assert (stream, size) == (0, min(size, 1 << 18)) and len(core.offered(0)) == size
        count = min(size, takes[turn % len(takes)] + turn // len(takes))
        turn += 1
        wire += core.offered(0)[:count]
        assert core.sent(0, count) == core.finished == (not size)
        assert core.queued_bytes == len(b"".join(writes)) - len(wire)
    assert wire == b"".join(writes)
    assert core.counters().streams[0][1] == len(wire)
    assert core.poll(0) is None and core.timeout_ns() is None


def test_sockets_carry_bytes_as_they_are_and_each_direction_ends_by_itself() -> None:
    ours, theirs = socket.create_server(("127.0.0.1", 0)), socket.socket()
    with ours as listener, theirs:
        theirs.connect(listener.getsockname())
        sock, _ = listener.accept()
        with sock:
            sock.setblocking(False)
            core = plain()
            core.attach(0, sock.fileno(), None, 0)
            assert core.receive_from(0) == FULL
            theirs.sendall(b"ping")
            theirs.shutdown(socket.SHUT_WR)
            assert core.receive_from(0) == 4 and core.take() == [b"ping"]
            assert core.receive_from(0) == 0 and not core.ended
            assert core.stream_end(0) and core.ended
            assert core.alive == 1
            core.write(b"pong")
            core.end()
            _, queued, blocked, ended, failed, _ = core.transmit(0)
            assert (queued, blocked, ended, failed) == (0, 0, 1, None)
            assert core.finished and theirs.recv(8) == b"pong"


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
        core.stream_end(0)
        assert b"".join(core.take()) == _core.MAGIC[:cut] and core.ended


def test_a_stream_is_not_read_while_much_waits_for_the_application() -> None:
    core, received = plain(), 0

    def is_readable() -> bool:
        return core.readable == 1

    while is_readable():
        core.receive(0, bytes(1 << 16))
        received += 1 << 16
    assert received == 1 << 20
    core.take()
    assert is_readable()


def test_the_queue_is_bounded_but_an_empty_one_takes_any_write() -> None:
    core = plain(100)
    core.write(bytes(500))
    with pytest.raises(BufferLimitExceeded):
        core.write(b"x")
    core.end()
    with pytest.raises(LocalProtocolError):
        core.write(b"x")


def test_a_plain_connection_has_one_stream() -> None:
    with pytest.raises(LocalProtocolError, match="one stream"):
        plain().add_stream(1, 1.0)
