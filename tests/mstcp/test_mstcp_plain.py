"""Plain TCP behind the core's interface: the same bytes, however the socket takes and gives them."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mstcp import BufferLimitExceeded, LocalProtocolError, RemoteProtocolError, _core
from mstcp.plain import PlainConnection


@settings(deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=50_000), max_size=5), st.integers(1, 5000))
def test_the_socket_gets_what_was_written(writes: list[bytes], chunk: int) -> None:
    plain = PlainConnection(1440, send_queue_bytes=1 << 30)
    plain.chunk_bytes = chunk
    for data in writes:
        plain.write(data)
    plain.end()
    wire = bytearray()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for sock in (ours, theirs):
            sock.setblocking(False)
        plain._descriptor = ours.fileno()  # not TCP: it cannot be paced
        while not plain.finished:
            offer = plain.poll(0)
            if offer is None:
                wire += theirs.recv(1 << 20)
                plain.writable(0)
                continue
            count = max(0, plain.send(0))
            assert plain.sent(0, count) == plain.finished
        ours.shutdown(socket.SHUT_WR)
        while data := theirs.recv(1 << 20):
            wire += data
    assert wire == b"".join(writes)
    assert plain.counters().bytes_sent == len(wire)
    assert plain.poll(0) is None


@given(st.lists(st.binary(min_size=1, max_size=12)))
def test_bytes_that_are_no_hello_pass_through(pieces: list[bytes]) -> None:
    plain = PlainConnection(1440, send_queue_bytes=0, refuse_hello=True)
    pieces = [b"\x93MS", *pieces, b" this is no hello"]
    for piece in pieces:
        plain.receive(0, piece)
    assert plain.ready_bytes == len(b"".join(pieces))
    assert b"".join(plain.take()) == b"".join(pieces)


def test_a_late_hello_is_refused_however_it_is_cut() -> None:
    for cut in range(1, 8):
        plain = PlainConnection(1440, send_queue_bytes=0, refuse_hello=True)
        plain.receive(0, _core.MAGIC[:cut])
        assert plain.ready_bytes == 0
        with pytest.raises(RemoteProtocolError):
            plain.receive(0, _core.MAGIC[cut:])
        plain = PlainConnection(1440, send_queue_bytes=0, refuse_hello=True)
        plain.receive(0, _core.MAGIC[:cut])
        with pytest.raises(RemoteProtocolError):
            plain.stream_end(0)


def test_the_queue_is_bounded_but_an_empty_one_takes_any_write() -> None:
    plain = PlainConnection(1440, send_queue_bytes=100)
    plain.write(bytes(500))
    with pytest.raises(BufferLimitExceeded):
        plain.write(b"x")
    plain.end()
    with pytest.raises(LocalProtocolError):
        plain.write(b"x")
