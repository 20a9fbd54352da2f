"""What is left of a web server's connections when it ends."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from controller.api.connections import abort_connections


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive, send


async def test_a_connection_that_came_as_the_server_ended_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(_nothing, log_config=None, lifespan="off", timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await asyncio.sleep(0)
        _, writer = await asyncio.open_connection(*listening.getsockname())
        while not server.server_state.connections:
            await asyncio.sleep(0.01)
        (connection,) = server.server_state.connections
        # uvicorn tells those that are there, once.
        monkeypatch.setattr(connection, "shutdown", lambda: None)
        server.should_exit = True
        await serving
        sock = connection.transport.get_extra_info("socket")
        assert sock.fileno() != -1
        await abort_connections(server)
        assert sock.fileno() == -1
        writer.close()
