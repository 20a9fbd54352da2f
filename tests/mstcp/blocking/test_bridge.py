"""Blocking connections driven by their callers' threads: several of them, signals, and when none calls."""

from __future__ import annotations

import contextlib
import hashlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import mstcp
from mstcp import StreamSpec, blocking
from mstcp.transport.shell import Shell
from tests.fakes.blocking_ends import Ends, connected
from tests.fakes.waiting import TIMEOUT_S, wait_until


@pytest.fixture
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """A connection of two streams, or of as many as the test says."""
    with connected(getattr(request, "param", 2)) as both:
        yield both


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Start a call in a thread; return the thread, and a list that gets what it returns or raises."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def receive_by(sock: blocking.Socket, draws: random.Random) -> bytes:
    """Receive to the end by calls of all sizes and both kinds."""
    received = bytearray()
    while True:
        size = draws.choice([1, 300, 9000, 1 << 16, 1 << 19, 1 << 21])
        if draws.random() < 0.5:
            chunk = sock.recv(size)
        else:
            buffer = bytearray(size)
            chunk = bytes(buffer[: sock.recv_into(buffer)])
        if not chunk:
            return bytes(received)
        assert len(chunk) <= size
        received += chunk


@pytest.mark.parametrize("ends", [1, 2], indirect=True)
@pytest.mark.parametrize("piece_bytes", [700, 1 << 15, 3 << 20])
def test_both_directions_at_once_by_two_threads_a_side(ends: Ends, piece_bytes: int) -> None:
    sent = [random.Random(seed).randbytes(2_000_000 if piece_bytes < 1000 else 12_000_000) for seed in (1, 2)]

    def send(sock: blocking.Socket, data: bytes) -> None:
        for at in range(0, len(data), piece_bytes):
            sock.sendall(data[at : at + piece_bytes])
        sock.shutdown(socket.SHUT_WR)

    threads = [in_thread(lambda s=s, d=d: send(s, d)) for s, d in zip(ends, sent, strict=True)]  # type: ignore[misc]
    back, results = in_thread(lambda: receive_by(ends[0], random.Random(3)))
    there = receive_by(ends[1], random.Random(4))
    for thread, outcome in [*threads, (back, results)]:
        thread.join(TIMEOUT_S)
        assert not any(isinstance(each, Exception) for each in outcome), outcome
    assert hashlib.sha256(there).digest() == hashlib.sha256(sent[0]).digest()
    assert results == [sent[1]]


def test_what_was_sent_arrives_though_no_thread_calls_any_more(ends: Ends) -> None:
    ours, theirs = ends
    ours.sendall(bytes(1 << 20))
    # What a busy machine has sent twice counts twice.
    wait_until(lambda: theirs.counters().bytes_received >= 1 << 20, "the bytes")
    wait_until(lambda: ours.counters().unacknowledged_bytes == 0, "the acknowledgements")
    # And though the peer's window was full in between.
    threading.Thread(target=ours.sendall, args=(bytes(24 << 20),)).start()
    wait_until(lambda: theirs.counters().bytes_received >= 16 << 20, "the bytes")
    left = 25 << 20
    while left:
        left -= len(theirs.recv(left))
    wait_until(lambda: ours.counters().unacknowledged_bytes == 0, "the acknowledgements")


def test_a_fault_in_one_connection_leaves_the_others_alone(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The library's loop carries all connections of the process."""
    real = Shell.take_back
    failed: list[Shell] = []

    def fail_once(shell: Shell) -> None:
        if not failed:
            failed.append(shell)
            raise ZeroDivisionError("a fault")
        real(shell)

    monkeypatch.setattr(Shell, "take_back", fail_once)
    ends[0].sendall(b"x")
    wait_until(lambda: "the library failed; please report it" in caplog.text, "the failure in the log")
    with connected() as (ours, theirs):
        ours.sendall(bytes(1 << 20))
        wait_until(lambda: theirs.counters().bytes_received >= 1 << 20, "the bytes")


def test_a_thread_that_sends_has_its_timeout_while_another_waits_for_bytes(ends: Ends) -> None:
    ours, theirs = ends
    waiting, received = in_thread(lambda: ours.recv(10))
    ours.settimeout(0.2)
    with pytest.raises(TimeoutError):
        while True:
            ours.sendall(bytes(1 << 20))
    assert not received
    theirs.sendall(b"answer")
    waiting.join(TIMEOUT_S)
    assert received == [b"answer"]


def test_a_second_reader_has_its_timeout_too(ends: Ends) -> None:
    ours, theirs = ends
    waiting, received = in_thread(lambda: ours.recv(10))
    wait_until(lambda: ours._reading.locked(), "the reader")
    ours.settimeout(0.05)
    with pytest.raises(TimeoutError):
        ours.recv(10)
    ours.settimeout(0)
    with pytest.raises(BlockingIOError):
        ours.recv(10)
    theirs.sendall(b"x")
    waiting.join(TIMEOUT_S)
    assert received == [b"x"]


def test_without_a_timeout_to_wait_the_librarys_thread_carries_on(ends: Ends) -> None:
    ours, theirs = ends
    for sock in ends:
        sock.settimeout(0)
    data, received, sent = bytes(range(256)) * 8192, bytearray(), 0
    while len(received) < len(data):
        with contextlib.suppress(BlockingIOError):
            sent += ours.send(data[sent : sent + 50_000]) if sent < len(data) else 0
        with contextlib.suppress(BlockingIOError):
            received += theirs.recv(70_000)
    assert received == data


def test_ending_the_direction_wakes_a_reader(ends: Ends) -> None:
    ours, theirs = ends
    waiting, received = in_thread(lambda: ours.recv(10))
    ours.shutdown(socket.SHUT_RD)
    waiting.join(TIMEOUT_S)
    assert received == [b""]
    ours.sendall(b"the other direction")
    assert theirs.recv(100) == b"the other direction"


def test_a_lost_connection_ends_both_waits(ends: Ends) -> None:
    ours, theirs = ends
    reading, received = in_thread(lambda: ours.recv(10))
    writing, written = in_thread(lambda: ours.sendall(bytes(100 << 20)))
    wait_until(lambda: theirs.counters().bytes_received > 0, "the bytes")
    theirs.abort()
    for thread, outcome in ((reading, received), (writing, written)):
        thread.join(TIMEOUT_S)
        assert isinstance(outcome[0], mstcp.ConnectionLost)


def test_a_stream_that_breaks_while_a_thread_waits_is_made_good(ends: Ends) -> None:
    ours, theirs = ends
    reading, received = in_thread(lambda: hashlib.sha256(receive_by(ours, random.Random(5))).digest())
    data = random.Random(6).randbytes(20_000_000)
    theirs.sendall(data[:5_000_000])
    theirs.get_extra_info("sockets")[1].shutdown(socket.SHUT_RDWR)
    theirs.sendall(data[5_000_000:])
    theirs.shutdown(socket.SHUT_WR)
    reading.join(TIMEOUT_S)
    assert received == [hashlib.sha256(data).digest()]
    # The stream was opened again.
    wait_until(lambda: sum(stream.is_alive for stream in ours.stats().streams) == 2, "both streams")


def test_early_data_comes_first() -> None:
    with blocking.create_server(("127.0.0.1", 0), timeout=TIMEOUT_S) as listener:
        address = listener.getsockname()[:2]
        ours = blocking.create_connection(address, streams=[StreamSpec()] * 2, early_data=b"early ")
        theirs, _ = listener.accept()
        with ours, theirs:
            ours.sendall(b"and late")
            ours.shutdown(socket.SHUT_WR)
            theirs.settimeout(TIMEOUT_S)
            assert receive_by(theirs, random.Random(7)) == b"early and late"


PROGRAM = """
import signal, socket, sys, threading
from mstcp import StreamSpec, blocking
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
signal.signal(signal.SIGINT, signal.default_int_handler)
listener = blocking.create_server(("127.0.0.1", 0))
ours = blocking.create_connection(listener.getsockname()[:2], streams=[StreamSpec()] * 2)
theirs, _ = listener.accept()
"""


@contextlib.contextmanager
def program(text: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program that says when it is ready; it is killed if it does not end."""
    argv = [sys.executable, "-u", "-c", PROGRAM + text]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("call", ["ours.recv(1)", "[ours.sendall(bytes(1 << 20)) for _ in range(100)]"])
def test_control_c_ends_a_wait_and_not_the_connection(call: str) -> None:
    text = f"""
print("ready")
try:
    {call}
    sys.exit("it was not interrupted")
except KeyboardInterrupt:
    pass
assert told
theirs.sendall(b"x")
assert ours.recv(1) == b"x"
"""
    with program(text) as waiting:
        # One that raises nothing comes first, and the wait goes on.
        time.sleep(0.5)
        waiting.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)


def test_a_program_ends_while_a_thread_of_it_waits() -> None:
    text = """
threading.Thread(target=ours.recv, args=(1,), daemon=True).start()
theirs.sendall(b"")
print("ready")
"""
    with program(text):
        pass
