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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mstcp

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


def _is_tcp(sock: socket.socket | None) -> bool:
    return sock is None or sock.family in (socket.AF_INET, socket.AF_INET6)


def _replaced_connection(original: Callable[..., Any]) -> Callable[..., Any]:
    async def create_connection(
        loop: Any, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        sock: socket.socket | None = options.get("sock")
        if not _is_tcp(sock):
            return await original(loop, protocol_factory, host, port, **options)
        address = options.pop("local_addr", None)
        given = _given(options, _CLIENT)
        if STREAMS > 1 and sock is not None:
            # A socket is one stream: the same destination is connected to over several.
            host, port = sock.getpeername()[:2]
            given.pop("sock").close()
        if given.get("ssl") is True:
            given["ssl"] = ssl.create_default_context()
        if address is not None:
            given["source_address"] = address
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
        return await mstcp.create_server(protocol_factory, host, port, **given)

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
        return await ours.connect(str(remote_host), remote_port, **given)

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
