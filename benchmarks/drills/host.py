"""What runs in the hosts of a drill: a receiver that notes when bytes arrive, and a sender with a fixed rate.

python -m benchmarks.drills.host receive PORT OUT.json
python -m benchmarks.drills.host send ADDRESS PORT DURATION_S STREAMS_JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import mstcp

TICK_S = 0.005


async def receive(port: int, out: Path) -> None:
    """Take one connection and write when how many bytes arrived: [[seconds, bytes], ...]."""
    arrivals: list[tuple[float, int]] = []
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            arrivals.append((time.monotonic(), len(data)))
        writer.close()
        done.set()

    server = await mstcp.start_server(serve, "0.0.0.0", port)
    print("listening", flush=True)
    await done.wait()
    server.close()
    out.write_text(json.dumps(arrivals))


async def send(address: str, port: int, duration_s: float, streams: list[dict[str, float]]) -> None:
    """Write at the sum of the streams' rates, and print how many bytes were written in all."""
    specs = [
        mstcp.StreamSpec(
            source_port=int(stream["source_port"]), rate_bps=stream["rate_bps"], delay_s=stream["delay_s"]
        )
        for stream in streams
    ]
    rate_bps = sum(stream["rate_bps"] for stream in streams)
    _, writer = await mstcp.open_connection(address, port, streams=specs)
    start, sent = time.monotonic(), 0
    while (elapsed_s := time.monotonic() - start) < duration_s:
        due = int(elapsed_s * rate_bps / 8) - sent
        if due > 0:
            writer.write(bytes(due))
            sent += due
            await writer.drain()
        await asyncio.sleep(TICK_S)
    writer.close()
    await writer.wait_closed()
    print(sent, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        asyncio.run(receive(int(sys.argv[2]), Path(sys.argv[3])))
    else:
        address, port, duration, streams = sys.argv[2:]
        asyncio.run(send(address, int(port), float(duration), json.loads(streams)))
