"""Blocking connections: what `socket` promises, over one stream and over several."""

from __future__ import annotations

import contextlib
import hashlib
import random
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

import mstcp
from mstcp import StreamSpec, blocking
from mstcp.blocking.bridge import QUEUED_BYTES
from tests.fakes.blocking_ends import connected
from tests.fakes.waiting import TIMEOUT_S


def read_all(sock: blocking.Socket) -> bytes:
    received = bytearray()
    while chunk := sock.recv(1 << 16):
        received += chunk
    return bytes(received)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_bytes_arrive_in_both_directions_and_each_ends_apart(count: int, host: str) -> None:
    data = random.Random(count).randbytes(5_000_000)
    with connected(count, host) as (ours, theirs):

        def send() -> None:
            ours.sendall(data)
            ours.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        assert hashlib.sha256(read_all(theirs)).digest() == hashlib.sha256(data).digest()
        sender.join()
        # The other direction is open still.
        theirs.sendall(data[:1000])
        theirs.shutdown(socket.SHUT_WR)
        assert read_all(ours) == data[:1000]
        assert len(ours.streams()) == count
        sent = ours.counters()
        assert sent.bytes_sent - sent.resent_bytes == len(data)
        with pytest.raises(mstcp.LocalProtocolError):
            ours.sendall(b"after the end")


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: memoryview(data).cast("I")])
@pytest.mark.parametrize("count", [1, 2])
def test_every_kind_of_buffer_is_sent(count: int, make: Any) -> None:
    data = bytes(range(256)) * 40_000
    with connected(count) as (ours, theirs):
        sender = threading.Thread(target=ours.sendall, args=(make(data),))
        sender.start()
        buffer = bytearray(len(data))
        filled = 0
        while filled < len(data):
            filled += theirs.recv_into(memoryview(buffer)[filled:])
        sender.join()
        assert buffer == data


def test_a_changed_bytearray_does_not_change_what_was_sent() -> None:
    with connected() as (ours, theirs):
        data = bytearray(b"a" * 100_000)
        ours.sendall(data)
        data[:] = b"b" * len(data)
        ours.shutdown(socket.SHUT_WR)
        assert read_all(theirs) == b"a" * 100_000


@pytest.mark.parametrize("count", [1, 2])
def test_a_writer_waits_for_a_reader_that_does_not_read(count: int) -> None:
    with connected(count, reorder_buffer_bytes=1 << 18) as (ours, theirs):
        ours.settimeout(1.0)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 1 << 30:
                sent += ours.send(bytes(1 << 20))
        assert sent < 1 << 26, "what waits is bounded"
        ours.settimeout(20)
        rest = threading.Thread(target=ours.shutdown, args=(socket.SHUT_WR,))
        rest.start()
        assert len(read_all(theirs)) == sent
        rest.join()


def test_who_watches_a_queue_that_is_full_to_the_byte_is_told_of_room() -> None:
    with connected() as (client, server):
        client.settimeout(0)
        core = client._bridge.transport.shell.core
        told = threading.Event()
        with client.watched(told.set):
            with contextlib.suppress(BlockingIOError):
                # The sockets take a part of each piece, in the end none.
                while True:
                    told.clear()
                    client.send(bytes(max(1, QUEUED_BYTES - core.queued_bytes)))
            server.settimeout(0.1)  # it may have all before we are told
            while not told.is_set():
                with contextlib.suppress(TimeoutError):
                    server.recv(1 << 20)
        assert client.send(b"x") == 1


@pytest.mark.parametrize("count", [1, 2])
def test_timeouts(count: int) -> None:
    with connected(count) as (ours, theirs):
        assert ours.gettimeout() == TIMEOUT_S
        ours.settimeout(0.05)
        with pytest.raises(TimeoutError):
            ours.recv(1)
        ours.settimeout(0)
        with pytest.raises(BlockingIOError):
            ours.recv(1)
        with pytest.raises(ValueError, match="a timeout is a number"):
            ours.settimeout(-1)
        ours.settimeout(20)
        theirs.sendall(b"x")
        assert ours.recv(10) == b"x"
    with blocking.create_server(("127.0.0.1", 0), timeout=0.05) as listener:
        with pytest.raises(TimeoutError):
            listener.accept()
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    # A listener that never answers the hello.
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TimeoutError):
        blocking.create_connection(silent.getsockname(), streams=[StreamSpec()] * 2, timeout=0.1)


@pytest.mark.parametrize("count", [1, 2])
def test_a_reset_is_not_an_end(count: int) -> None:
    with connected(count) as (ours, theirs):
        theirs.sendall(b"before")
        assert ours.recv(6) == b"before"
        theirs.abort()
        with pytest.raises(mstcp.ConnectionLost):
            ours.recv(1)
        with pytest.raises(mstcp.ConnectionLost):
            ours.sendall(b"x")


@pytest.mark.parametrize("count", [1, 2])
def test_closing_wakes_a_thread_that_waits(count: int) -> None:
    with connected(count) as (ours, _):
        caught: list[BaseException] = []

        def wait() -> None:
            try:
                ours.recv(1)
            except BaseException as error:
                caught.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        ours.close()
        waiting.join(20)
        assert isinstance(caught[0], mstcp.ConnectionClosed)
        for use in (lambda: ours.recv(1), lambda: ours.sendall(b"x"), lambda: ours.shutdown(socket.SHUT_WR)):
            with pytest.raises(mstcp.ConnectionClosed):
                use()
        ours.close()


@pytest.mark.parametrize("count", [1, 2])
def test_what_was_sent_before_close_arrives(count: int) -> None:
    data = random.Random(1).randbytes(3_000_000)
    with connected(count) as (ours, theirs):
        ours.sendall(data)
        ours.close()
        assert read_all(theirs) == data


def test_files() -> None:
    with connected() as (ours, theirs):
        with ours.makefile("rw", encoding="utf-8", newline="\n") as ask, theirs.makefile("rwb") as answer:
            ask.write("Grüße\n")
            ask.flush()
            assert answer.readline() == "Grüße\n".encode()
            answer.write(b"one\ntwo\n")
            answer.flush()
            assert [ask.readline(), ask.readline()] == ["one\n", "two\n"]
        ours.sendall(b"the socket is open still")
        raw = theirs.makefile("rb", buffering=0)
        assert raw.read(100) == b"the socket is open still"
        with pytest.raises(ValueError, match="buffer"):
            ours.makefile("r", buffering=0)
        with pytest.raises(ValueError, match="mode"):
            ours.makefile("x")


def test_sockets_of_the_system_are_understood() -> None:
    with blocking.create_server((None, 0), timeout=20) as listener:
        with socket.create_connection(listener.getsockname()) as plain:
            plain.sendall(b"plain")
            sock, _ = listener.accept()
            with sock:
                sock.settimeout(20)
                assert sock.recv(10) == b"plain"
                assert sock.get_extra_info("protocol") == "tcp"
    with pytest.raises(mstcp.ConnectionClosed):
        listener.accept()
    with pytest.raises(ConnectionRefusedError):
        blocking.create_connection(plain_address(), timeout=20)


def test_any_tcp_server_is_spoken_to_in_both_directions_at_once() -> None:
    data = random.Random(1).randbytes(20_000_000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = blocking.create_connection(listener.getsockname(), streams=[StreamSpec()], timeout=TIMEOUT_S)
        theirs, _ = listener.accept()

    def echo() -> None:
        while piece := theirs.recv(100_000):
            theirs.sendall(piece)
        theirs.sendall(b"the end")
        theirs.shutdown(socket.SHUT_WR)

    def send() -> None:
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)

    with ours, theirs:
        threads = [threading.Thread(target=work) for work in (echo, send)]
        for thread in threads:
            thread.start()
        assert read_all(ours) == data + b"the end"
        for thread in threads:
            thread.join(TIMEOUT_S)


def plain_address() -> tuple[str, int]:
    """Return an address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        return gone.getsockname()  # type: ignore[no-any-return]


def test_connections_beyond_the_backlog_are_reset() -> None:
    with blocking.create_server(("127.0.0.1", 0), backlog=1, plain=True, timeout=20) as listener:
        with socket.create_connection(listener.getsockname()) as first:
            first.sendall(b"1")
            with (
                pytest.raises(ConnectionResetError),
                socket.create_connection(listener.getsockname(), timeout=20) as second,
            ):
                second.recv(1)
            sock, _ = listener.accept()
            with sock:
                assert sock.recv(1) == b"1"


def test_a_connection_that_is_forgotten_is_told_of() -> None:
    with connected() as (ours, theirs):
        forgotten = blocking.Socket(ours._bridge, None)
        with pytest.warns(ResourceWarning, match="unclosed"):
            del forgotten
        assert theirs.recv(1) == b""


FORKING = """
import os
import mstcp
from tests.fakes.blocking_ends import connected

with connected() as (ours, theirs):
    child = os.fork()
    if child == 0:
        try:
            ours.sendall(b"from the child")
        except mstcp.ConnectionClosed:
            with connected() as (mine, other):
                mine.sendall(b"x")
                os._exit(0 if other.recv(1) == b"x" else 2)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    ours.sendall(b"from the parent")
    assert theirs.recv(100) == b"from the parent"
"""


def test_a_fork_leaves_connections_to_the_parent() -> None:
    # In a process of its own: the threads of gRPC, which other tests load, do not survive a fork.
    with run_program(FORKING) as forking:
        assert forking.wait(60) == 0


def run_program(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_control_c_interrupts_a_wait() -> None:
    program = """
import signal, sys
from mstcp import blocking
signal.signal(signal.SIGINT, signal.default_int_handler)
with blocking.create_server(("127.0.0.1", 0)) as listener:
    try:
        print("ready", flush=True)
        listener.accept()
    except KeyboardInterrupt:
        sys.exit(7)
"""
    with run_program(program) as waiting:
        assert waiting.stdout is not None
        waiting.stdout.readline()
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(20) == 7


def test_the_end_of_the_program_loses_nothing_that_was_sent() -> None:
    with blocking.create_server(("127.0.0.1", 0), timeout=20) as listener:
        host, port = listener.getsockname()
        program = f"""
from mstcp import StreamSpec, blocking
with blocking.create_connection(({host!r}, {port}), streams=[StreamSpec()] * 2) as sock:
    sock.sendall(bytes(4_000_000))
"""
        with run_program(program) as sending:
            sock, _ = listener.accept()
            with sock:
                sock.settimeout(20)
                assert len(read_all(sock)) == 4_000_000
            assert sending.wait(20) == 0


def test_wrong_use_is_named() -> None:
    with connected() as (ours, _):
        with pytest.raises(ValueError, match="must not be negative"):
            ours.recv(-1)
        with pytest.raises(ValueError, match="SHUT_"):
            ours.shutdown(9)
        assert ours.recv(0) == b""
        assert ours.recv_into(bytearray()) == 0
    with pytest.raises(mstcp.LocalProtocolError):
        blocking.create_connection(("127.0.0.1", 1), scheduler="none")
