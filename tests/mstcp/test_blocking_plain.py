"""Blocking connections over a single path, beside a socket of the system: plain TCP, as it is."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from mstcp import ConnectionClosed, ConnectionLost, StreamSpec, blocking

LIMIT_S = 30.0
Ends = tuple[blocking.Socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A connection of ours, and the peer's socket."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        ours = blocking.create_connection(listener.getsockname(), streams=[StreamSpec()], timeout=LIMIT_S)
        theirs, _ = listener.accept()
        theirs.settimeout(LIMIT_S)
        yield stack.enter_context(ours), stack.enter_context(theirs)


def test_both_directions_are_carried_at_once_and_end_apart(ends: Ends) -> None:
    ours, theirs = ends
    data = random.Random(1).randbytes(20_000_000)

    def echo() -> None:
        while piece := theirs.recv(100_000):
            theirs.sendall(piece)
        theirs.sendall(b"the end")
        theirs.shutdown(socket.SHUT_WR)

    def send() -> None:
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)

    threads = [threading.Thread(target=work) for work in (echo, send)]
    for thread in threads:
        thread.start()
    received = bytearray()
    while piece := ours.recv(1 << 20):
        received += piece
    for thread in threads:
        thread.join(LIMIT_S)
    assert received == data + b"the end"
    assert ours.recv(1) == b""


@pytest.mark.parametrize("size", [1, 1000, 16_384, 1 << 20])
def test_any_size_is_received_into_a_buffer(ends: Ends, size: int) -> None:
    ours, theirs = ends
    data = random.Random(size).randbytes(min(300_000, 500 * size))
    sender = threading.Thread(target=theirs.sendall, args=(data,))
    sender.start()
    received, buffer = bytearray(), bytearray(size)
    while len(received) < len(data):
        received += buffer[: ours.recv_into(buffer)]
    sender.join(LIMIT_S)
    assert received == data


def test_what_is_not_received_waits_with_the_sender(ends: Ends) -> None:
    ours, theirs = ends
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    theirs.setblocking(False)
    sent, piece = 0, bytes(1 << 16)
    # Until nothing is taken any more: our kernel is full as well, and what we read ahead is bounded.
    while select.select([], [theirs], [], 1.0)[1]:
        assert sent < 64 << 20, "there is no bound"
        with contextlib.suppress(BlockingIOError):
            sent += theirs.send(piece)
    received = 0
    while received < sent:
        received += len(ours.recv(1 << 20))
    assert select.select([], [theirs], [], LIMIT_S)[1]


def test_a_reset_comes_after_what_was_sent_before_it(ends: Ends) -> None:
    ours, theirs = ends
    theirs.sendall(b"last words")
    assert ours.recv(100) == b"last words"
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    theirs.close()
    with pytest.raises(ConnectionLost):
        ours.recv(100)
    with pytest.raises((ConnectionLost, ConnectionClosed)):
        ours.sendall(b"too late")


def test_waits_end_in_time_and_without_one_nothing_waits(ends: Ends) -> None:
    ours, theirs = ends
    ours.settimeout(0.05)
    with pytest.raises(TimeoutError):
        ours.recv(1)
    ours.settimeout(0)
    with pytest.raises(BlockingIOError):
        ours.recv(1)
    theirs.sendall(b"now")
    until_s = time.monotonic() + LIMIT_S
    received = b""
    while len(received) < 3 and time.monotonic() < until_s:
        with contextlib.suppress(BlockingIOError):
            received += ours.recv(3)
    assert received == b"now"


def test_closing_ends_a_wait_and_delivers_what_was_sent(ends: Ends) -> None:
    ours, theirs = ends
    ours.sendall(b"all of it")
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            ours.recv(1)
        except ConnectionClosed as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.05)
    ours.close()
    waiting.join(LIMIT_S)
    assert len(raised) == 1
    received = b""
    while piece := theirs.recv(100):
        received += piece
    assert received == b"all of it"
