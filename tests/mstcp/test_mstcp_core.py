"""The compiled core on real sockets: what it reads and sends by itself, without a transport around it."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator

import pytest

from mstcp import _core

HUGE_BPS, SLOW_BPS = 1e10, 1e6
FRAME_BYTES = 1 << 17


def core(weights: list[float]) -> _core.Connection:
    return _core.Connection(
        weights, 1440, scheduler="weighted", seed=1, send_queue_bytes=1 << 24, reorder_buffer_bytes=1 << 24
    )


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A TCP connection over loopback whose first end takes few bytes at once."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        sender = stack.enter_context(socket.socket())
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        sender.connect(listener.getsockname())
        receiver = stack.enter_context(listener.accept()[0])
        for sock in (sender, receiver):
            sock.setblocking(False)
        yield sender, receiver


def test_a_frame_larger_than_what_may_wait_unsent_still_leaves(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """The bound can shrink under a frame that was begun: a path turns out slower than it seemed."""
    sender, receiver = pair
    connection = core([HUGE_BPS])
    connection.attach(0, sender.fileno(), None, True)
    connection.write(bytes(FRAME_BYTES))
    sent = connection.transmit(0)[0]
    assert 0 < sent < FRAME_BYTES
    connection.attach(0, sender.fileno(), 4096, True)
    received = 0
    while received < FRAME_BYTES:
        readable, writable, _ = select.select([receiver], [sender], [], 10)
        assert readable or writable, f"it stands still after {received} bytes"
        if readable:
            received += len(receiver.recv(1 << 16))
        if writable:
            connection.writable(0)
            connection.transmit(0)
    assert connection.queued_bytes == 0
