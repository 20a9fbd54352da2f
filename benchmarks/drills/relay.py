"""A relay of TCP connections on the loopback: `-m benchmarks.drills.relay PORT TO`."""

from __future__ import annotations

import asyncio
import sys

HOST = "127.0.0.1"
READ_BYTES = 1 << 18


async def relay(port: int, to: int) -> None:
    """Relay connections as they come."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner = await asyncio.open_connection(HOST, to)
            await asyncio.gather(pump(reader, inner[1]), pump(inner[0], writer))
        except OSError:
            writer.close()

    server = await asyncio.start_server(carry, HOST, port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(int(sys.argv[1]), int(sys.argv[2])))
