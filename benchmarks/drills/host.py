"""What runs in the hosts of a drill: a receiver that notes when bytes arrive, and a sender with a fixed rate.

python -m benchmarks.drills.host receive PORT OUT.json
python -m benchmarks.drills.host send ADDRESS PORT DURATION_S STREAMS_JSON
python -m benchmarks.drills.host ask ADDRESS PORT DURATION_S CONTROLLERS RATE_BPS
python -m benchmarks.drills.host grow ADDRESS PORT DURATION_S CONTROLLERS RATE_BPS
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import time
from pathlib import Path

import mstcp

TICK_S = 0.005


async def receive(port: int, out: Path) -> None:
    """Take one connection and write when how many bytes arrived ([[seconds, bytes], ...]), and a digest."""
    arrivals: list[tuple[float, int]] = []
    digest = hashlib.sha256()
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            arrivals.append((time.monotonic(), len(data)))
            digest.update(data)
        writer.close()
        done.set()

    server = await mstcp.start_server(serve, "0.0.0.0", port)
    print("listening", flush=True)
    await done.wait()
    server.close()
    out.write_text(json.dumps({"arrivals": arrivals, "digest": digest.hexdigest()}))


async def send(address: str, port: int, duration_s: float, streams: list[dict[str, float]]) -> None:
    """Write at the sum of the streams' rates, and print how many bytes were written and their digest."""
    specs = [
        mstcp.StreamSpec(
            source_port=int(stream["source_port"]), rate_bps=stream["rate_bps"], delay_s=stream["delay_s"]
        )
        for stream in streams
    ]
    rate_bps = sum(stream["rate_bps"] for stream in streams)
    _, writer = await mstcp.open_connection(address, port, streams=specs)
    await write(writer, rate_bps, duration_s)


async def ask(
    address: str, port: int, duration_s: float, controllers: str, rate_bps: float, may_grow: bool
) -> None:
    """Ask a controller for a rate and write at it, if it may grow over as many streams as are allocated."""
    _, writer = await mstcp.open_connection(
        address, port, controller=controllers, rate=rate_bps, packet_bytes=590, may_grow=may_grow
    )
    await write(writer, rate_bps, duration_s)


async def write(writer: asyncio.StreamWriter, rate_bps: float, duration_s: float) -> None:
    """Write at a rate, and print how many bytes were written in all, and their digest."""
    start, sent, draw, digest = time.monotonic(), 0, random.Random(1), hashlib.sha256()
    while (elapsed_s := time.monotonic() - start) < duration_s:
        due = int(elapsed_s * rate_bps / 8) - sent
        if due > 0:
            data = draw.randbytes(due)
            digest.update(data)
            writer.write(data)
            sent += due
            await writer.drain()
        await asyncio.sleep(TICK_S)
    writer.close()
    await writer.wait_closed()
    print(sent, digest.hexdigest(), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        asyncio.run(receive(int(sys.argv[2]), Path(sys.argv[3])))
    elif sys.argv[1] in ("ask", "grow"):
        how, address, port, duration, controllers, rate = sys.argv[1:]
        asyncio.run(ask(address, int(port), float(duration), controllers, float(rate), how == "grow"))
    else:
        address, port, duration, streams = sys.argv[2:]
        asyncio.run(send(address, int(port), float(duration), json.loads(streams)))
