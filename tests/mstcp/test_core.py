"""The compiled core on real sockets: what it reads and sends by itself, without a transport around it."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence

import pytest

from mstcp import _core

HUGE_BPS, SLOW_BPS = 1e10, 1e6
FRAME_BYTES = 1 << 17
UNREPORTED_BYTES = 30_000
"""A stream takes so much before anything is reported."""
SENT_BYTES = 1 << 23
SPLIT_BYTES = 1 << 22


Attached = tuple[_core.Connection, list[int]]
"""A connection, and the numbers of its sockets."""


def core(weights: list[float]) -> _core.Connection:
    return _core.Connection(
        weights, 1440, scheduler="weighted", seed=1, send_queue_bytes=1 << 24, reorder_buffer_bytes=1 << 24
    )


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A TCP connection over loopback whose first end takes few bytes at once."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sender = stack.enter_context(socket.socket())
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
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
    number = connection.attach(0, sender.fileno(), HUGE_BPS)
    connection.write(bytes(UNREPORTED_BYTES))
    connection.settle(0)
    assert 0 < connection.sent_bytes < UNREPORTED_BYTES
    connection.pace(0, SLOW_BPS)
    received = 0
    while received < UNREPORTED_BYTES:
        readable, writable, _ = select.select([receiver], [sender], [], 10)
        assert readable or writable, f"it stands still after {received} bytes"
        if readable:
            received += len(receiver.recv(1 << 16))
        if writable:
            connection.writable(0, number)
    assert connection.queued_bytes == 0


# --- streams whose rates nobody gave ------------------------------------------------------------------------
def loopback(stack: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        first = stack.enter_context(socket.create_connection(listener.getsockname()))
        second = stack.enter_context(listener.accept()[0])
    for sock in (first, second):
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return first, second


def shares_of_slow_streams(has_rates: bool) -> list[float]:
    """Return, for each of two streams, its part of the bytes when it was said to carry nothing.

    TCP's figures stay as they are meanwhile, since nothing is sent, and each split begins without the debts
    that the transfer and other splits leave between streams: the machine's speed does not matter.
    """
    with contextlib.ExitStack() as stack:
        ends = list(zip(*(loopback(stack) for _ in range(2)), strict=True))
        rate_bps = HUGE_BPS if has_rates else None
        cores = [attached_core(socks, rate_bps) for socks in ends]
        transfer(cores, ends)
        splits = [split_beside_fast(attached_core(ends[0], rate_bps)[0], slow) for slow in range(2)]
        return [sizes[slow] / sum(sizes) for slow, sizes in enumerate(splits)]


def attached_core(socks: Sequence[socket.socket], rate_bps: float | None) -> Attached:
    connection = core([1.0] * len(socks))
    numbers = [connection.attach(at, sock.fileno(), rate_bps) for at, sock in enumerate(socks)]
    return connection, numbers


def split_beside_fast(sender: _core.Connection, slow: int) -> list[int]:
    """Return how many bytes each of two streams is given when `slow` is said to carry nothing."""
    now_ns = time.monotonic_ns()
    sender.set_weights([1.0 if stream == slow else HUGE_BPS for stream in range(2)])
    sender.measure(now_ns)
    sender.write(bytes(SPLIT_BYTES))
    sizes = [0, 0]
    while (offer := sender.poll(now_ns)) is not None:
        sizes[offer[0]] += offer[1]
        sender.sent(*offer)
        report_all(sender)
    return sizes


def report_all(sender: _core.Connection) -> None:
    """Tell a core that all frames that it sent have arrived, by an ACK frame."""
    streams = enumerate(carried[0] for carried in sender.counters().streams)
    body = struct.pack("!QQ", 0, 0) + b"".join(struct.pack("!IQ", *each) for each in streams)
    sender.receive(0, struct.pack("!B5xH", 0x82, len(body)) + body)


def transfer(cores: list[Attached], ends: list[tuple[socket.socket, socket.socket]]) -> None:
    """Send SENT_BYTES from the first core to the second, until all is acknowledged."""
    sender, _ = cores[0]
    sender.write(bytes(SENT_BYTES))
    every = [sock for socks in ends for sock in socks]
    while sender.queued_bytes or sender.counters().unacknowledged_bytes:
        readable, writable, _ = select.select(every, every, [], 10)
        for (connection, numbers), socks in zip(cores, ends, strict=True):
            for stream, sock in enumerate(socks):
                if sock in readable:
                    connection.readable(time.monotonic_ns(), numbers[stream], True)
                if sock in writable:
                    connection.writable(time.monotonic_ns(), numbers[stream])
            connection.settle(time.monotonic_ns())


def test_a_stream_without_a_rate_gets_what_its_path_is_found_to_carry() -> None:
    """By what TCP measured the shares add up to all, whichever stream was said to carry nothing."""
    assert sum(shares_of_slow_streams(has_rates=False)) == pytest.approx(1, abs=4 * FRAME_BYTES / SPLIT_BYTES)


def test_a_stream_with_a_rate_keeps_it_whatever_its_path_could_carry() -> None:
    assert max(shares_of_slow_streams(has_rates=True)) <= 2 * FRAME_BYTES / SPLIT_BYTES
