"""Connections that are left when a web server ends."""

from __future__ import annotations

import asyncio

import uvicorn


async def abort_connections(server: uvicorn.Server) -> None:
    """Close what a server that has ended left open: connections that came as it ended, for example."""
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    await asyncio.sleep(0)  # the loop closes the sockets
