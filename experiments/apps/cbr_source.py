"""A constant-bit-rate source: `python -m experiments.apps.cbr_source CONFIG`.

Writes one packet's payload at each tick, if the connection has room for it; a tick that finds it full is
skipped, as the paper's sources do. Each write is stamped with CLOCK_MONOTONIC and its offset in the stream.

| from the engine | to the engine |
|---|---|
| {"order": "connect"}, perhaps with "source_ports" | {"event": "connected", "streams": [...], ...} |
| {"order": "send", "start_ns": ..., "stop_ns": ..., | {"event": "done", ...} when the sink has all |
| "rate_bps": to keep to, or null}                   | |
| | {"event": "failed", "reason": ...} when something went wrong |
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from typing import Any

import numpy as np

import mstcp
from experiments.apps import kernel_mptcp
from experiments.apps.cbr import Ticks
from experiments.apps.config import SourceConfig
from experiments.apps.pattern import Pattern
from experiments.apps.process import emit, now_ns, order, run
from mstcp.transport import SCHEDULER

LEAST_GAP_NS = 500_000
"""Ticks that fall due within half a millisecond are served together, which spares the processor thousands of
wake-ups a second and moves a packet by less than it takes to send one at 10 Mbit/s."""
WAKE_EARLY_NS = 60_000
"""What the kernel and the event loop take, on average, from a timer to the code."""


async def main(config: SourceConfig) -> None:
    """Connect, send from start to stop, and see that the peer has read everything."""
    connect = await order()
    reader, writer = await _connect(config, connect.get("source_ports", []))
    streams = writer.get_extra_info("streams")
    payload_bytes = writer.get_extra_info("frame_payload_bytes")
    emit("connected", streams=[_describe(stream) for stream in streams], payload_bytes=payload_bytes)
    orders = await order()
    rate_bps = orders["rate_bps"] or config.rate_bps
    ticks = Ticks(rate_bps, payload_bytes, orders["start_ns"], orders["stop_ns"])
    source = Source(writer, ticks, Pattern(config.seed, payload_bytes), round(config.sample_s * 1e9))
    await source.finished()
    writer.write_eof()
    drained = await _drain(reader, config.drain_s)
    source.save(config.log)
    emit("done", bytes_written=source.offset, ticks_skipped=source.skipped, drained=drained)
    if drained:
        writer.close()
        await writer.wait_closed()
    else:
        writer.transport.abort()


async def _connect(config: SourceConfig, source_ports: list[int]) -> tuple[asyncio.StreamReader, Any]:
    if config.connection.kernel == "mptcp":
        payload_bytes = config.packet_bytes - config.overhead_bytes - config.header_bytes
        return await kernel_mptcp.open_connection(
            (config.host, config.port), source_ports, config.sockets, payload_bytes
        )
    options: dict[str, Any] = {
        "packet_bytes": config.packet_bytes,
        "congestion_control": config.sockets.congestion_control,
        "send_buffer_bytes": config.sockets.send_buffer_bytes,
        "receive_buffer_bytes": config.sockets.receive_buffer_bytes,
        "seed": config.seed,
    }
    connection = config.connection
    if connection.controller is None:
        streams = [mstcp.StreamSpec(source_port=port) for port in source_ports or [0]]
        return await mstcp.open_connection(config.host, config.port, streams=streams, **options)
    from mstcp.allocation import RequestedPath

    paths = [RequestedPath(path.nodes, path.rate_bps) for path in connection.paths]
    return await mstcp.open_connection(
        config.host,
        config.port,
        rate=config.rate_bps,
        controller=connection.controller,
        objective=connection.objective,
        paths=paths or None,
        scheduler=connection.scheduler or SCHEDULER,
        **options,
    )


def _describe(stream: Any) -> dict[str, Any]:
    return {
        "source_port": stream.source_port,
        "rate_bps": stream.rate_bps,
        "path": list(stream.path) if stream.path else None,
        "congestion_control": stream.congestion_control,
    }


async def _drain(reader: asyncio.StreamReader, timeout_s: float) -> bool:
    """Wait until the peer has read everything and closes in turn; False if it takes too long."""
    try:
        await asyncio.wait_for(reader.read(), timeout_s)
    except asyncio.TimeoutError:
        return False
    return True


class Source:
    """Writes at each tick and keeps the log; begins by itself."""

    def __init__(self, writer: Any, ticks: Ticks, pattern: Pattern, sample_ns: int) -> None:
        self.offset = 0
        self.skipped = 0
        self._writer = writer
        self._transport = writer.transport
        self._ticks = ticks
        self._pattern = pattern
        self._sample_ns = sample_ns
        self._next_sample_ns = 0
        self._loop = asyncio.get_running_loop()
        self._done = self._loop.create_future()
        self._offsets = array("q")
        self._times_ns = array("q")
        self._sample_times_ns = array("q")
        self._samples: list[list[int]] = []
        self._loop.call_at((ticks.start_ns - WAKE_EARLY_NS) * 1e-9, self._wake)

    async def finished(self) -> None:
        """Wait for the last tick; raises what went wrong on the way."""
        await self._done

    def _wake(self) -> None:
        try:
            self._serve()
        except Exception as error:  # an exception in a callback would only be logged
            if not self._done.done():
                self._done.set_exception(error)

    def _serve(self) -> None:
        now = now_ns()
        for _ in range(self._ticks.due(now)):
            self._tick()
        if now >= self._next_sample_ns:
            self._sample(now)
        following = self._ticks.next_ns(now, LEAST_GAP_NS)
        if following is None:
            self._sample(now_ns())
            self._done.set_result(None)
        else:
            self._loop.call_at((following - WAKE_EARLY_NS) * 1e-9, self._wake)

    def _tick(self) -> None:
        length = self._ticks.payload_bytes
        stamp = now_ns()
        if self._transport.try_write(self._pattern.at(self.offset, length)):
            self.offset += length
            self._offsets.append(self.offset)
            self._times_ns.append(stamp)
        else:
            self.skipped += 1

    def _sample(self, now: int) -> None:
        statistics = self._writer.get_extra_info("statistics")
        self._sample_times_ns.append(now)
        self._samples.append([stream.bytes_sent for stream in statistics.streams])
        self._next_sample_ns = now + self._sample_ns

    def save(self, path: str) -> None:
        """Write the log: offsets and times of the writes, and samples of each stream's bytes."""
        np.savez(
            path,
            offset=np.frombuffer(self._offsets, dtype=np.int64),
            time_ns=np.frombuffer(self._times_ns, dtype=np.int64),
            sample_time_ns=np.frombuffer(self._sample_times_ns, dtype=np.int64),
            stream_bytes=np.array(self._samples, dtype=np.int64),
        )


if __name__ == "__main__":
    sys.exit(run(lambda: main(SourceConfig.from_json(sys.argv[1]))))
