"""How a source writes: at each tick of a constant bit rate, or what lies before it as fast as it is taken."""

from __future__ import annotations

import asyncio
import itertools
import random
from array import array
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from experiments.apps.config import SourceConfig
from experiments.apps.pattern import Pattern
from experiments.apps.process import now_ns
from experiments.apps.stream_progress import StreamProgress, by_stream

CHUNK_PAYLOADS = 8
"""What a source with much before it writes at once, in payloads of a packet."""
FIRST_RETRY_NS, LAST_RETRY_NS = 1_000_000, 16_000_000
"""When to try a full send buffer again: sooner than a buffer of 128 KiB drains at 64 Mbit/s."""
MAX_CATCH_UP_NS = 50_000_000
"""A source that keeps to a rate makes up for this much time, and no more, in which it could not write."""


def _ignore(**_: Any) -> None:
    """Tell nobody."""


class Source(asyncio.Protocol):
    """Writes one flow and keeps its log; the protocol of its connection, over which requests may come."""

    def __init__(self, config: SourceConfig, transport: Any, pattern: Pattern) -> None:
        self.config = config
        self.transport = transport
        self.payload_bytes: int = transport.get_extra_info("frame_payload_bytes")
        self.offset = 0
        self.skipped = 0
        self.start_ns = self.stop_ns = 0
        self._pattern = pattern.of(2 * config.number)
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._peer_ended: asyncio.Future[None] = self._loop.create_future()
        self._offsets, self._times_ns = array("q"), array("q")
        self._sample_times_ns = array("q")
        self._samples: list[list[int]] = []
        self._streams: list[tuple[int, int, int, int, int]] = []
        self._ports = [stream.source_port for stream in transport.get_extra_info("streams")]
        self._carried = [0] * len(self._ports)
        self._subflows: Callable[[], Mapping[int, StreamProgress]] | None = transport.get_extra_info(
            "subflows"
        )
        self.on_sample: Callable[..., None] = _ignore
        """Told `time_ns`, the bytes of all `streams` and those of `subflows` by port, at each sample."""
        transport.set_protocol(self)

    def describe(self) -> dict[str, Any]:
        """Return what is to be told of the connection."""
        streams = [
            {
                "source_port": stream.source_port,
                "rate_bps": stream.rate_bps,
                "path": list(stream.path) if stream.path else None,
                "congestion_control": stream.congestion_control,
            }
            for stream in self.transport.get_extra_info("streams")
        ]
        return {
            "flow": self.config.flow,
            "streams": streams,
            "has_subflows": self._subflows is not None,
            "payload_bytes": self.payload_bytes,
        }

    def begin(self, start_ns: int, stop_ns: int, rate_bps: float | None) -> None:
        """Write from one time until before another, at a rate in bit/s where one is given."""
        self.start_ns, self.stop_ns = start_ns, stop_ns
        self._call_at(start_ns, self._sample)
        self._call_at(stop_ns, self._stop)
        self._begin(rate_bps)

    def _begin(self, rate_bps: float | None) -> None:
        raise NotImplementedError

    async def finished(self) -> None:
        """Wait for the stop; raises what went wrong on the way."""
        await self._done

    async def drained(self, timeout_s: float) -> bool:
        """Send the end, wait until the peer has read everything; False if it takes too long."""
        self.transport.write_eof()
        finished, _ = await asyncio.wait([self._peer_ended], timeout=timeout_s)
        for future in finished:
            future.result()
        return bool(finished)

    async def close(self, drained: bool) -> None:
        """Close the connection: in peace, or at once."""
        if drained:
            self.transport.close()
            await self.transport.wait_closed()
        else:
            self.transport.abort()

    def report(self) -> dict[str, Any]:
        """Return what is to be told of the transfer."""
        return {"bytes_written": self.offset, "ticks_skipped": self.skipped}

    def save(self, path: str) -> None:
        """Write the log: offsets and times of the writes, samples of streams and subflows."""
        streams = len(self.transport.get_extra_info("streams"))
        np.savez(
            path,
            offset=np.frombuffer(self._offsets, dtype=np.int64),
            time_ns=np.frombuffer(self._times_ns, dtype=np.int64),
            sample_time_ns=np.frombuffer(self._sample_times_ns, dtype=np.int64),
            stream_bytes=np.array(self._samples, dtype=np.int64).reshape(-1, streams),
            samples_by_port=np.array(self._streams, dtype=np.int64).reshape(-1, 5),
        )

    # --- asyncio.Protocol -----------------------------------------------------------------------------------
    def data_received(self, data: bytes) -> None:
        """Take what came from the peer, which by itself sends nothing."""
        raise RuntimeError(f"{len(data)} bytes came from a sink that was asked for none")

    def eof_received(self) -> bool:
        """Note that the peer has everything; the connection stays open until it is closed here."""
        if not self._peer_ended.done():
            self._peer_ended.set_result(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a connection that broke before its end."""
        error = exc or EOFError("the connection was closed before its end")
        self._fail(error)
        if not self._peer_ended.done():
            self._peer_ended.set_exception(error)

    # --- for the kinds of sources ---------------------------------------------------------------------------
    def _write(self, length: int) -> bool:
        """Write the next bytes if the connection takes them all."""
        stamp = now_ns()
        if not self.transport.try_write(self._pattern.at(self.offset, length)):
            return False
        self.offset += length
        self._offsets.append(self.offset)
        self._times_ns.append(stamp)
        return True

    def _call_at(self, time_ns: int, function: Callable[[], None]) -> None:
        def call() -> None:
            try:
                if not self._done.done():
                    function()
            except Exception as error:  # an exception in a callback would only be logged
                self._fail(error)

        self._loop.call_at((time_ns - self.config.timing.wake_early_ns) * 1e-9, call)

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)

    def _stop(self) -> None:
        self._take_sample()
        self._done.set_result(None)

    def _sample(self) -> None:
        self._take_sample()
        self._call_at(now_ns() + round(self.config.sample_s * 1e9), self._sample)

    def _take_sample(self) -> None:
        if self._subflows is None:
            each = by_stream(self.transport.get_extra_info("sockets") or ())
            told = list(zip(self._ports, each, strict=False))
            carried = [sample.arrived_bytes for sample in each]
        else:
            told = list(self._subflows().items())
            carried = [sum(sample.arrived_bytes for _, sample in told)]
        time_ns = now_ns()
        self._streams += [(time_ns, port, *sample) for port, sample in told]
        # Segments that were counted as arrived may turn out to be fewer bytes; what ends keeps its count.
        self._carried = [max(pair) for pair in itertools.zip_longest(self._carried, carried, fillvalue=0)]
        self._sample_times_ns.append(time_ns)
        self._samples.append(self._carried)
        subflows = {} if self._subflows is None else {port: sample.arrived_bytes for port, sample in told}
        self.on_sample(time_ns=time_ns, streams=self._carried, subflows=subflows)


class TickSource(Source):
    """Writes at each tick, if the connection has room for it; a tick that finds it full is skipped."""

    _ticks: Iterator[tuple[int, int]]
    _next: tuple[int, int] | None = None

    def _begin(self, rate_bps: float | None) -> None:
        self._ticks = self._due(rate_bps or self.config.rate_bps)
        self._serve()

    def _due(self, rate_bps: float) -> Iterator[tuple[int, int]]:
        """Yield when each tick is due (ns), and its size in bytes."""
        config = self.config
        jitter_ns = config.timing.tick_jitter * self.payload_bytes * 8e9 / rate_bps
        late = random.Random(config.seed)
        for tick in config.workload.decisions(rate_bps, self.payload_bytes, config.seed):
            yield self.start_ns + round(tick.time_s * 1e9 + jitter_ns * late.random()), tick.size_bytes
        while True:
            yield self.stop_ns, 0

    def _serve(self) -> None:
        now = now_ns()
        reach_ns = min(now, self.stop_ns - 1)
        due_ns, size_bytes = self._next or next(self._ticks)
        while due_ns <= reach_ns:
            if not self._write(size_bytes):
                self.skipped += 1
            due_ns, size_bytes = next(self._ticks)
        self._next = due_ns, size_bytes
        if due_ns < self.stop_ns:
            wake_ns = max(due_ns, now + self.config.timing.write_gap_ns)
            self._call_at(min(wake_ns, self.stop_ns - 1), self._serve)  # no tick is due unserved at the end


class BacklogSource(Source):
    """Writes what lies before it as fast as the connection takes it, or a given rate allows.

    Of a bulk transfer that is the file, at the start; of requests the answers to those that have come.
    """

    _backlog = 0
    _waiting = False
    _retry_ns = FIRST_RETRY_NS
    _ns_per_byte = 0.0
    _allowed_ns = 0.0
    _requests_bytes = 0
    _requests_wrong = 0

    def _begin(self, rate_bps: float | None) -> None:
        config = self.config
        self._ns_per_byte = 8e9 / rate_bps if rate_bps else 0.0
        limit = config.sockets.send_buffer_bytes
        chunk = self.payload_bytes * (1 if rate_bps else CHUNK_PAYLOADS)
        self._chunk_bytes = chunk if limit is None else max(1, min(chunk, limit // 4))
        asking = config.workload.asking
        if asking is not None:
            self._request_bytes = asking.request_bytes
            self._requests = self._pattern.of(2 * config.number + 1)
            self._answers = asking.answer_sizes(config.seed)
        else:
            self._decisions = config.workload.decisions(config.rate_bps, self.payload_bytes, config.seed)
            self._await_decision()

    def _await_decision(self) -> None:
        """Add to the backlog what is decided next, when it is due."""
        decision = next(self._decisions, None)
        if decision is not None:
            due_ns = self.start_ns + round(decision.time_s * 1e9)
            if due_ns < self.stop_ns:
                self._call_at(due_ns, partial(self._decided, decision.size_bytes))

    def _decided(self, size: int) -> None:
        self._add(size)
        self._await_decision()

    def report(self) -> dict[str, Any]:
        """Return what is to be told of the transfer."""
        read = {"request_bytes_read": self._requests_bytes, "request_bytes_wrong": self._requests_wrong}
        return {**super().report(), **read}

    def data_received(self, data: bytes) -> None:
        """Check requests, and answer each that is complete."""
        if self.config.workload.asking is None:
            super().data_received(data)
        self._requests_wrong += self._requests.wrong_bytes(self._requests_bytes, data)
        before = self._requests_bytes // self._request_bytes
        self._requests_bytes += len(data)
        complete = self._requests_bytes // self._request_bytes - before
        if complete and not self._done.done():
            self._add(sum(itertools.islice(self._answers, complete)))

    def _add(self, size: int) -> None:
        if not self._backlog:
            self._allowed_ns = max(self._allowed_ns, now_ns())
        self._backlog += size
        if not self._waiting:
            self._push()

    def _push(self) -> None:
        self._waiting = False
        now = min(now_ns(), self.stop_ns - 1)  # called late, it writes no more than it would have in time
        while self._backlog:
            if self._allowed_ns > now:
                self._wait_until(max(round(self._allowed_ns), now + self.config.timing.write_gap_ns))
                return
            size = min(self._backlog, self._chunk_bytes)
            if not self._write(size):
                self._wait_until(now + self._retry_ns)
                self._retry_ns = min(2 * self._retry_ns, LAST_RETRY_NS)
                return
            self._backlog -= size
            self._retry_ns = max(self._retry_ns // 2, FIRST_RETRY_NS)
            if self._ns_per_byte:
                self._allowed_ns = max(self._allowed_ns, now - MAX_CATCH_UP_NS) + size * self._ns_per_byte

    def _wait_until(self, time_ns: int) -> None:
        self._waiting = True
        self._call_at(time_ns, self._push)
