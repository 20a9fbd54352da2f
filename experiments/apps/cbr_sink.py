"""A sink: `python -m experiments.apps.cbr_sink CONFIG`.

Takes one connection, checks every byte and logs every read.

| to the engine | when |
|---|---|
| {"event": "listening"} | it can be connected to |
| {"event": "done", ...} | it has read everything; with its counters |
| {"event": "failed", "reason": ...} | something went wrong |
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from typing import Any

import numpy as np

import mstcp
from experiments.apps import kernel_mptcp
from experiments.apps.config import SinkConfig
from experiments.apps.pattern import Pattern
from experiments.apps.process import CoalescingSelector, emit, now_ns, run

READ_BYTES = 65536
LONGEST_DELIVERY = 8 << 20
"""More than a reorder buffer and a socket's buffer can set free at once."""
LEAST_GAP_S = 400e-6
"""What comes within this time is read together; above 2,500 packets a second it adds 0.2 ms to the delay."""


async def main(config: SinkConfig) -> None:
    """Listen, read one connection to its end, and report."""
    pattern = Pattern(config.seed, LONGEST_DELIVERY)
    sink = Sink(pattern)
    ended: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: Any) -> None:
        try:
            report = await sink.read(reader, writer)
        except Exception as error:
            ended.set_exception(error)
        else:
            ended.set_result(report)

    if config.kernel == "mptcp":
        with kernel_mptcp.listen((config.host, config.port), config.sockets) as listener:
            emit("listening")
            report = await sink.read(*await kernel_mptcp.accept(listener, config.sockets))
        sink.save(config.log)
        emit("done", **report)
        return
    server = await mstcp.start_server(
        serve,
        config.host,
        config.port,
        congestion_control=config.sockets.congestion_control,
        send_buffer_bytes=config.sockets.send_buffer_bytes,
        receive_buffer_bytes=config.sockets.receive_buffer_bytes,
    )
    emit("listening")
    report = await ended
    sink.save(config.log)
    emit("done", **report)
    server.close()
    await server.wait_closed()


class Sink(asyncio.Protocol):
    """Takes a connection's bytes as they come, checks them against the pattern and keeps the log.

    It begins as a reader of the stream and goes on as the transport's protocol: at 7,000 packets a second the
    reader's wake-ups would cost as much again as all the rest.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._offset = 0
        self._wrong = 0
        self._offsets = array("q")
        self._times_ns = array("q")
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read(self, reader: asyncio.StreamReader, writer: Any) -> dict[str, Any]:
        """Read to the end, close in turn, and return what is to be reported."""
        transport = writer.transport
        size = READ_BYTES
        while size == READ_BYTES:  # a shorter read has emptied the reader
            data = await reader.read(READ_BYTES)
            size = len(data)
            if data:
                self.data_received(data)
        if not reader.at_eof():
            transport.set_protocol(self)
            await self._ended
        streams = transport.get_extra_info("streams")
        statistics = transport.get_extra_info("statistics")
        transport.close()
        await transport.wait_closed()
        return {
            "bytes_read": self._offset,
            "bytes_wrong": self._wrong,
            "frames_received": statistics.frames_received,
            "out_of_order_frames": statistics.out_of_order_frames,
            "reorder_max_bytes": statistics.reorder_max_bytes,
            "congestion_control": sorted({stream.congestion_control for stream in streams}),
        }

    def data_received(self, data: bytes) -> None:
        """Stamp and check what was read in order."""
        stamp = now_ns()
        self._wrong += self._pattern.wrong_bytes(self._offset, data)
        self._offset += len(data)
        self._offsets.append(self._offset)
        self._times_ns.append(stamp)

    def eof_received(self) -> bool:
        """Note the end; the connection stays open until it is closed here."""
        if not self._ended.done():
            self._ended.set_result(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a connection that broke before its end."""
        if not self._ended.done():
            self._ended.set_exception(exc or EOFError("the connection was closed before its end"))

    def save(self, path: str) -> None:
        """Write the log: offsets and times of the reads."""
        np.savez(
            path,
            offset=np.frombuffer(self._offsets, dtype=np.int64),
            time_ns=np.frombuffer(self._times_ns, dtype=np.int64),
        )


if __name__ == "__main__":
    sink_config = SinkConfig.from_json(sys.argv[1])
    sys.exit(run(lambda: main(sink_config), CoalescingSelector(LEAST_GAP_S)))
