"""The socket options of streams, on real sockets."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator

import pytest

from mstcp import _core

SO_MAX_PACING_RATE = 47
TCP_NOTSENT_LOWAT = 25
IPPROTO_MPTCP = 262
UNLIMITED = 2**64 - 1

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pacing is Linux's")


def core() -> _core.Connection:
    return _core.Connection(
        [1.0], 528, scheduler="weighted", seed=1, send_queue_bytes=1 << 20, reorder_buffer_bytes=1 << 20
    )


def paced_at(sock: socket.socket) -> int:
    rate: int = struct.unpack("=Q", sock.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8))[0]
    return rate


@pytest.fixture
def stream() -> Iterator[socket.socket]:
    with socket.socket() as sock:
        yield sock


def test_a_stream_is_paced_at_its_rate_with_headers_and_slack(stream: socket.socket) -> None:
    core().attach(0, stream.fileno(), 8e6)
    assert paced_at(stream) == int(1e6 * 536 / 528 * 1.01)
    assert stream.getsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT) == int(1e4 * 536 / 528)


def test_a_rate_that_is_taken_back_leaves_no_limit(stream: socket.socket) -> None:
    paced = core()
    paced.attach(0, stream.fileno(), 8e6)
    paced.pace(0, None)
    assert paced_at(stream) == UNLIMITED
    assert stream.getsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT) > 1 << 20


def test_kernel_mptcp_is_left_unpaced_without_a_rate_and_refuses_one() -> None:
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    except OSError:
        pytest.skip("needs kernel MPTCP")
    with sock:
        core().attach(0, sock.fileno(), None)
        assert paced_at(sock) == UNLIMITED
        with pytest.raises(OSError, match="not supported"):
            core().attach(0, sock.fileno(), 8e6)
