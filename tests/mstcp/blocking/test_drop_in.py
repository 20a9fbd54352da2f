"""Blocking connections where programs and libraries expect a socket."""

from __future__ import annotations

import contextlib
import functools
import http.client
import http.server
import random
import select
import selectors
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.connection import is_connection_dropped

from mstcp import StreamSpec, blocking
from tests.fakes.blocking_ends import Ends, connected
from tests.fakes.waiting import TIMEOUT_S, wait_until
from tests.mstcp.test_tls import client_context, server_context

KINDS = ["plain", "streams", "tls"]


@contextlib.contextmanager
def pair(kind: str) -> Iterator[Ends]:
    """Yield both ends of a connection; over TLS the library's thread carries it, else the application's."""
    options: dict[str, Any] = (
        {"ssl": client_context(), "server": {"ssl": server_context()}} if kind == "tls" else {}
    )
    with connected(1 if kind == "plain" else 2, **options) as ends:
        yield ends


def is_readable(sock: Any, seconds: float = 0) -> bool:
    return bool(select.select([sock], [], [], seconds)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_the_descriptor_is_readable_just_while_bytes_are_in_order(kind: str) -> None:
    rng = random.Random(kind)
    with pair(kind) as (ours, theirs):
        assert theirs.fileno() == theirs.fileno() >= 0
        received = sent = 0
        for _ in range(60):
            if rng.random() < 0.5:
                size = rng.choice((1, 100, 70_000))
                ours.sendall(bytes(size))
                sent += size
            elif received < sent:
                assert is_readable(theirs, TIMEOUT_S)
                received += len(
                    theirs.recv(rng.choice((1, 5000, 1 << 20)), rng.choice((0, socket.MSG_DONTWAIT)))
                )
            if received == sent:
                with pytest.raises(BlockingIOError):
                    theirs.recv(1, socket.MSG_DONTWAIT)
                assert not is_readable(theirs)
        while received < sent:
            assert is_readable(theirs, TIMEOUT_S)
            received += len(theirs.recv(1 << 20))
        waiting = threading.Thread(target=ours.recv, args=(1,))
        waiting.start()
        # The other end reads by a thread that waits, and this one by `select`.
        theirs.sendall(b"x")
        waiting.join(TIMEOUT_S)
        ours.shutdown(socket.SHUT_WR)
        assert is_readable(theirs, TIMEOUT_S) and theirs.recv(1) == b"" and is_readable(theirs)
        theirs.close()
        assert theirs.fileno() == -1


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_were_peeked_at_are_received(kind: str) -> None:
    with pair(kind) as (ours, theirs):
        ours.sendall(b"a line\nanother")
        buffer = bytearray(20)
        while len(theirs.recv(100, socket.MSG_PEEK)) < 14:
            pass
        assert theirs.recv(6, socket.MSG_PEEK) == b"a line" and is_readable(theirs)
        assert theirs.recv_into(buffer, 20, socket.MSG_PEEK) == 14
        assert theirs.recv(7) == b"a line\n" and theirs.recv(3, socket.MSG_PEEK) == b"ano"
        later = threading.Timer(0.1, ours.sendall, (b" and one more",))
        later.start()
        assert theirs.recv(20, socket.MSG_WAITALL) == b"another and one more"
        later.join()
        with pytest.raises(OSError, match="flags 0x1 are not among those"):
            theirs.recv(1, socket.MSG_OOB)
        with pytest.raises(OSError, match="flags"):
            theirs.sendall(b"x", socket.MSG_OOB)
        ours.shutdown(socket.SHUT_WR)
        assert theirs.recv(1, socket.MSG_PEEK) == b""


def test_options_are_set_on_all_streams() -> None:
    with pair("streams") as (ours, theirs):
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        for sock in ours.get_extra_info("sockets"):
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        with pytest.raises(OSError, match="the library sets this option itself"):
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 100)
        assert ours.family == socket.AF_INET and ours.type == socket.SOCK_STREAM
        ours.setblocking(False)
        assert not ours.getblocking() and ours.timeout == 0
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        ours.close()
        with pytest.raises(ConnectionError):
            theirs.recv(1)


def test_a_file_keeps_its_connection() -> None:
    with pair("streams") as (ours, theirs):
        with ours.makefile("rwb") as file:
            ours.close()
            file.write(b"a line\n")
            file.flush()
            assert theirs.recv(7, socket.MSG_WAITALL) == b"a line\n"
            theirs.sendall(b"answer\n")
            assert file.readline() == b"answer\n"
        assert theirs.recv(1) == b""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[::-1])

    def log_message(self, *_: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """`socketserver` as it is, its socket ours."""

    def __init__(self) -> None:
        socketserver.BaseServer.__init__(self, ("127.0.0.1", 0), Handler)
        listener: Any = blocking.create_server(("127.0.0.1", 0))
        self.socket = listener
        self.server_name, self.server_port = listener.getsockname()


@pytest.fixture(scope="module")
def http_port() -> Iterator[int]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


open_two = functools.partial(blocking.create_connection, streams=[StreamSpec()] * 2)
DATA = random.Random(6).randbytes(300_000)


def test_http_client_over_a_connection(http_port: int) -> None:
    client = http.client.HTTPConnection("127.0.0.1", http_port, timeout=TIMEOUT_S)
    client._create_connection = open_two  # type: ignore[attr-defined]
    for _ in range(3):
        client.request("POST", "/", DATA)
        response = client.getresponse()
        assert response.read() == DATA[::-1]
    client.close()


class Connection(urllib3.connection.HTTPConnection):
    opened = 0

    def _new_conn(self) -> Any:
        Connection.opened += 1
        sock = open_two((self._dns_host, self.port), TIMEOUT_S)
        for option in self.socket_options or ():
            sock.setsockopt(*option)
        return sock


class Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = Connection


class Adapter(HTTPAdapter):
    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": Pool}


def test_urllib3_and_requests_keep_a_connection_and_see_that_it_was_closed(http_port: int) -> None:
    adapter = Adapter()
    with requests.Session() as session:
        session.mount("http://", adapter)
        for _ in range(3):
            answer = session.post(f"http://127.0.0.1:{http_port}/", DATA, timeout=TIMEOUT_S)
            assert answer.status_code == 200 and answer.content == DATA[::-1]
        assert Connection.opened == 1
        closing = session.post(
            f"http://127.0.0.1:{http_port}/", DATA, headers={"Connection": "close"}, timeout=TIMEOUT_S
        )
        assert closing.content == DATA[::-1]
        pools: Any = adapter.poolmanager.pools
        (kept,) = (each for key in pools.keys() for each in pools[key].pool.queue if each)  # noqa: SIM118
        wait_until(lambda: is_connection_dropped(kept), "the server's close has arrived")
        assert session.post(f"http://127.0.0.1:{http_port}/", b"x", timeout=TIMEOUT_S).content == b"x"
        assert Connection.opened == 2


def test_a_selector_serves_many_connections() -> None:
    with blocking.create_server(("127.0.0.1", 0), timeout=0) as listener, contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        selector.register(listener, selectors.EVENT_READ)
        address = listener.getsockname()
        clients = [stack.enter_context(open_two(address, TIMEOUT_S)) for _ in range(5)]
        for number, client in enumerate(clients):
            client.sendall(b"%d" % number)
        came: list[bytes] = []
        while len(came) < len(clients):
            for key, _ in selector.select(TIMEOUT_S):
                ready: Any = key.fileobj
                if ready is listener:
                    accepted, _ = listener.accept()
                    stack.enter_context(accepted)
                    selector.register(accepted, selectors.EVENT_READ)
                else:
                    came.append(ready.recv(10))
        assert sorted(came) == [b"%d" % number for number in range(len(clients))]
        assert not is_readable(listener)
