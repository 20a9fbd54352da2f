"""The sinks of a host: `python -m experiments.apps.sink CONFIG`.

Each flow has a port and one connection. Checks every byte and logs every read; of flows with requests, it is
the sink that asks.

| from the engine | to the engine |
|---|---|
| | {"event": "listening"}: all ports can be connected to |
| | {"event": "accepted"}: all that will ask have a connection |
| {"order": "start", "flows": {flow: {"start_ns": ..., "stop_ns": ...}}} | |
| | {"event": "done", "flows": {flow: ...}}: everything is read; with counters |
| | {"event": "failed", "reason": ...}: something went wrong |
"""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments import protocols
from experiments.apps.config import SinkConfig, load_sinks
from experiments.apps.pattern import Pattern
from experiments.apps.process import emit, now_ns, order, run, selector_for
from experiments.apps.request_client import RequestClient
from experiments.apps.transports import Accepting

_T = TypeVar("_T")


async def main(configs: list[SinkConfig]) -> None:
    """Listen for all flows, read each one's connection to its end, and report."""
    pattern = Pattern(configs[0].run_seed)
    sinks = {config.flow: Sink(config, pattern) for config in configs}
    async with AsyncExitStack() as stack:
        for sink in sinks.values():
            await sink.listen(stack)
        emit("listening")
        ended = asyncio.gather(*(sink.ended for sink in sinks.values()))
        await _unless(ended, asyncio.gather(*(sink.can_ask for sink in sinks.values())))
        emit("accepted")
        started = await _unless(ended, order())
        for name, times in started["flows"].items():
            sinks[name].begin(times["start_ns"], times["stop_ns"])
        reports = await ended
        for sink in sinks.values():
            sink.save()
        emit("done", flows=dict(zip(sinks, reports, strict=True)))


async def _unless(ended: asyncio.Future[Any], awaited: Awaitable[_T]) -> _T:
    """Return the result of what is awaited, unless a sink fails before."""
    task = asyncio.ensure_future(awaited)
    await asyncio.wait([task, ended], return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        ended.result()  # raises: no sink ends before it has been started
    return task.result()


class Sink(Accepting):
    """Takes a connection's bytes as they come, checks them against the pattern and keeps the log.

    A protocol, since at 7,000 packets a second the wake-ups of a stream's reader would cost as much again as
    all the rest.

    Attributes:
        can_ask: Done when there is a connection to ask over; at once for a sink that does not ask.
        ended: What is to be reported, when everything is read and the connection closed.
    """

    def __init__(self, config: SinkConfig, pattern: Pattern) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.can_ask: asyncio.Future[None] = loop.create_future()
        if config.workload.asking is None:
            self.can_ask.set_result(None)
        self._config = config
        self._run_pattern = pattern
        self._pattern = pattern.of(2 * config.number)
        self._request_client: RequestClient | None = None
        self._offset = 0
        self._wrong = 0
        self._offsets = array("q")
        self._times_ns = array("q")
        self._all_read: asyncio.Future[None] = loop.create_future()
        self._serving: asyncio.Task[None] | None = None

    async def listen(self, stack: AsyncExitStack) -> None:
        """Listen on the flow's port, until the stack is left."""
        await protocols.get(self._config.protocol).server(self._config, self, stack)

    def begin(self, start_ns: int, stop_ns: int) -> None:
        """Begin to ask, if that is what this sink does."""
        if self._request_client is not None:
            self._request_client.begin(start_ns, stop_ns)

    def failed(self, error: Exception) -> None:
        """End with what went wrong."""
        if not self.ended.done():
            self.ended.set_exception(
                RuntimeError(f"flow {self._config.flow}: {error or type(error).__name__}")
            )

    def connection_made(self, transport: Any) -> None:
        """Begin with the flow's one connection."""
        if self._serving is not None:
            self.failed(ConnectionError("a second connection was made"))
            return
        self._serving = asyncio.ensure_future(self._serve(transport))
        if not self.can_ask.done():
            self.can_ask.set_result(None)
            self._request_client = RequestClient(self._config, transport, self._run_pattern, self.failed)

    async def _serve(self, transport: Any) -> None:
        try:
            report = await self._read(transport)
        except Exception as error:
            self.failed(error)
        else:
            if not self.ended.done():
                self.ended.set_result(report)

    async def _read(self, transport: Any) -> dict[str, Any]:
        """Wait for the end, close in turn, and return what is to be reported."""
        await self._all_read
        streams = transport.get_extra_info("streams")
        counters = transport.get_extra_info("counters")
        transport.close()
        await transport.wait_closed()
        return {
            "bytes_read": self._offset,
            "bytes_wrong": self._wrong,
            "request_bytes_written": self._request_client.bytes_written if self._request_client else 0,
            "frames_received": counters.frames_received,
            "out_of_order_frames": counters.out_of_order_frames,
            "reorder_max_bytes": counters.reorder_max_bytes,
            "congestion_control": sorted(
                {each.congestion_control for each in streams if each.congestion_control}
            ),
        }

    def data_received(self, data: bytes) -> None:
        """Stamp and check what was read in order."""
        stamp = now_ns()
        self._wrong += self._pattern.wrong_bytes(self._offset, data)
        self._offset += len(data)
        self._offsets.append(self._offset)
        self._times_ns.append(stamp)
        if self._request_client is not None:
            self._request_client.received(self._offset)

    def eof_received(self) -> bool:
        """Note the end; the connection stays open until it is closed here."""
        if not self._all_read.done():
            self._all_read.set_result(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a connection that broke before its end."""
        if not self._all_read.done():
            self._all_read.set_exception(exc or EOFError("the connection was closed before its end"))

    def save(self) -> None:
        """Write the log: offsets and times of the reads, and the requests."""
        arrays: dict[str, Any] = {
            "offset": np.frombuffer(self._offsets, dtype=np.int64),
            "time_ns": np.frombuffer(self._times_ns, dtype=np.int64),
        }
        if self._request_client is not None:
            arrays.update(self._request_client.log())
        np.savez(self._config.log, **arrays)


def serve(config: Path) -> int:
    """Be the sink that a file describes, to its end, and return the exit status."""
    told = load_sinks(config)
    return run(lambda: main(told), selector_for(told[0].timing, told[0].timing.read_gap_ns))


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1])))
