"""A pytest plugin: asyncio's event loops make each TCP connection one of `mstcp`.

MSTCP_SUITE_STREAMS says of how many streams, 0 leaves asyncio as it is; MSTCP_SUITE_OUTCOMES names the file
that gets a line of JSON for each test.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import mstcp
from mstcp.endpoints import Destination
from mstcp.tools.proxy import Exit

STREAMS = int(os.environ.get("MSTCP_SUITE_STREAMS", "0"))
_LOOP = asyncio.base_events.BaseEventLoop
_CLIENT = ("sock", "ssl", "server_hostname")
_SERVER = ("sock", "ssl", "backlog", "reuse_port", "start_serving")
_IGNORED = {
    *("happy_eyeballs_delay", "interleave", "all_errors", "family", "proto", "flags", "reuse_address"),
    *("ssl_handshake_timeout", "ssl_shutdown_timeout", "keep_alive"),
}
"""Options that change when a connection is given up, or which address is tried, but nothing of its bytes."""


def _given(options: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    given = {name: value for name, value in options.items() if value is not None and name not in _IGNORED}
    if unknown := set(given) - set(known):
        raise TypeError(f"not an option of mstcp: {', '.join(sorted(unknown))}")
    return given


class _PlainLoop(asyncio.SelectorEventLoop):
    """An event loop that stays as asyncio has it."""

    create_connection = _LOOP.create_connection
    create_server = _LOOP.create_server


class _Relays:
    """The far half of connections to servers that are not ours: several streams in, one plain TCP out."""

    def __init__(self) -> None:
        self.own: set[int] = set()
        self._ports: dict[Destination, int] = {}
        self._loop = _PlainLoop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def before(self, host: Any, port: Any) -> tuple[Any, Any]:
        """Return where to connect to in order to reach a server."""
        if STREAMS == 1 or port in self.own or not _is_listened_to(port):
            return host, port
        to = Destination(str(host), port)
        if to not in self._ports:
            self._ports[to] = asyncio.run_coroutine_threadsafe(self._start(to), self._loop).result(10)
        return "127.0.0.1", self._ports[to]

    async def _start(self, to: Destination) -> int:
        ready: asyncio.Future[Sequence[socket.socket]] = self._loop.create_future()
        leave = Exit(to, None, lambda _sentence: None)
        self.serving = self._loop.create_task(leave.serve("127.0.0.1", 0, ready.set_result))
        port: int = (await ready)[0].getsockname()[1]
        return port


def _is_listened_to(port: Any) -> bool:
    entries = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(entry[1].endswith(f":{port:04X}") and entry[3] == "0A" for entry in entries)


_RELAYS = _Relays()


def _is_tcp(sock: socket.socket | None) -> bool:
    return sock is None or sock.family in (socket.AF_INET, socket.AF_INET6)


async def _connected(loop: Any, like: socket.socket) -> socket.socket:
    sock = socket.socket(like.family, socket.SOCK_STREAM)
    sock.setblocking(False)
    await loop.sock_connect(sock, like.getpeername())
    return sock


def _replaced_connection(original: Callable[..., Any]) -> Callable[..., Any]:
    async def create_connection(
        loop: Any, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        sock: socket.socket | None = options.get("sock")
        if not _is_tcp(sock):
            return await original(loop, protocol_factory, host, port, **options)
        local_address = options.pop("local_addr", None)
        given = _given(options, _CLIENT)
        if sock is not None:
            # A test may set its options afterwards, which a transport of asyncio allows.
            given["sock"] = sock.dup()
            address = sock.getpeername()[:2]
            if STREAMS > 1 and address[1] in _RELAYS.own:
                others = [await _connected(loop, sock) for _ in range(1, STREAMS)]
                given["sock"] = [given["sock"], *others]
            elif STREAMS > 1:
                given.pop("sock").close()
                host, port = _RELAYS.before(*address)
        else:
            host, port = _RELAYS.before(host, port)
        if given.get("ssl") is True:
            given["ssl"] = ssl.create_default_context()
        if local_address is not None:
            given["source_address"] = local_address
        if STREAMS > 1:
            given["streams"] = [mstcp.StreamSpec()] * STREAMS
        return await mstcp.create_connection(protocol_factory, host, port, **given)

    return create_connection


def _replaced_server(original: Callable[..., Any]) -> Callable[..., Any]:
    async def create_server(
        loop: Any, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        sock: socket.socket | None = options.get("sock")
        if not _is_tcp(sock) or isinstance(host, list | tuple):
            return await original(loop, protocol_factory, host, port, **options)
        given = _given(options, _SERVER)
        if sock is None and host is None:
            host = ""
        if sock is not None:
            given["sock"] = sock.dup()
        server = await mstcp.create_server(protocol_factory, host, port, **given)
        _RELAYS.own.update(each.getsockname()[1] for each in server.sockets)
        return server

    return create_server


def _replace_anyio() -> None:
    """Have anyio's functions for TCP be those of `mstcp.anyio`."""
    import anyio

    from mstcp import anyio as ours

    if STREAMS == 0:
        return
    original = anyio.connect_tcp

    async def connect_tcp(remote_host: Any, remote_port: int, **options: Any) -> Any:
        if options.get("tls") or options.get("tls_hostname") or options.get("ssl_context"):
            return await original(remote_host, remote_port, **options)
        given: dict[str, Any] = {"streams": [mstcp.StreamSpec()] * STREAMS} if STREAMS > 1 else {}
        if local_host := options.get("local_host"):
            given["source_address"] = (str(local_host), options.get("local_port") or 0)
        return await ours.connect(*_RELAYS.before(str(remote_host), remote_port), **given)

    anyio.connect_tcp = connect_tcp


def pytest_configure() -> None:
    """Replace what opens and accepts connections."""
    if STREAMS == 0:
        return
    if os.environ.get("MSTCP_SUITE_ANYIO"):
        _replace_anyio()
        return
    _LOOP.create_connection = _replaced_connection(_LOOP.create_connection)  # type: ignore[method-assign]
    _LOOP.create_server = _replaced_server(_LOOP.create_server)  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write a test's outcome down."""
    if report.when == "call" or report.outcome != "passed":
        with Path(os.environ["MSTCP_SUITE_OUTCOMES"]).open("a") as outcomes:
            reason = str(report.longrepr).splitlines()[-1][:300] if report.failed else ""
            outcomes.write(json.dumps([report.nodeid, report.outcome, reason]) + "\n")
