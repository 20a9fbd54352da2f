"""State of a connection and of its peer: figures, traces, keepalive."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mstcp import sockets
from mstcp.errors import LocalProtocolError
from mstcp.stats import ConnectionStats, Meter, tcp_info
from mstcp.streams import ConnectionCounters, StreamCounters, StreamInfo
from mstcp.trace import INTERVAL_S, Trace
from mstcp.transport.open_stream import OpenStream
from mstcp.transport.shell import Shell


class Health:
    """What a connection knows of itself, and whether its peer is there.

    Args:
        shell: Has the driver.
    """

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self._meter = Meter()
        self._trace: Trace | None = None
        self._trace_timer: asyncio.TimerHandle | None = None
        self._probes = 0
        self._idle_s: float | None = None

    # --- figures and traces -------------------------------------------------------------------------------
    def counters(self) -> ConnectionCounters:
        """Return what the connection has carried; cheap, at any time, also after it was closed."""
        counters = self.shell.core.counters()
        if self.shell.is_plain:
            (stream,) = counters.streams
            carried = StreamCounters(None, stream[1], None, stream[3], None, 0)
            return ConnectionCounters((carried,), None, None, None, counters.queued_bytes)
        return ConnectionCounters(
            tuple(StreamCounters(*stream) for stream in counters.streams),
            counters.out_of_order_frames,
            counters.reorder_bytes,
            counters.reorder_max_bytes,
            counters.queued_bytes,
            counters.unacknowledged_bytes,
            counters.duplicate_bytes,
        )

    def streams(self) -> list[StreamInfo]:
        """Return the streams as they are now; after the end, as they were."""
        return [
            StreamInfo(
                index,
                stream.spec.source_port,
                stream.spec.rate_bps,
                stream.spec.delay_s,
                stream.spec.path,
                stream.congestion_control,
            )
            for index, stream in enumerate(self.shell.streams)
        ]

    def stats(self) -> ConnectionStats:
        """Return how the connection and each stream is now, with rates since the last call.

        `counters()` beside what the kernel knows of each stream (RTT, congestion window, retransmissions,
        delivery rate). One system call a stream; also after the end, without the kernel's part.
        """
        return self._look(self._meter)

    def _look(self, meter: Meter) -> ConnectionStats:
        core = self.shell.core
        alive, stalled = core.alive, core.stalled
        if self.shell.is_closed:
            alive = 0
        tcp = [tcp_info(stream.sock) for stream in self.shell.streams]
        return meter.look(self.shell.loop.time(), self.counters(), self.streams(), tcp, alive, stalled)

    def start_trace(self, path: str | Path) -> None:
        """Write a qlog-style trace of the connection from now on; see mstcp/trace.py.

        A file that cannot be written on with (a full disk) ends the trace, never the connection.

        Args:
            path: The file, or a folder, in which the file is named after the connection.

        Raises:
            LocalProtocolError: The file cannot be opened, or the connection has a trace already.
        """
        if self._trace is not None:
            raise LocalProtocolError("the connection has a trace already")
        name = self.shell.information.get("connection_id", b"plain").hex()
        vantage = "server" if self.shell.information.get("is_server") else "client"
        self._trace = Trace(path, name, vantage, self.shell.loop.time())
        streams = [_told(stream) for stream in self.streams()]
        self.note_event("connection_started", streams=streams)
        self._trace_metrics(Meter())

    def _trace_metrics(self, meter: Meter) -> None:
        if self._trace is not None and not self.shell.is_closed:
            self._trace.metrics(self._look(meter))
            self._trace_timer = self.shell.loop.call_later(INTERVAL_S, self._trace_metrics, meter)

    def note_event(self, name: str, **data: Any) -> None:
        """Tell the trace, if there is one."""
        if self._trace is not None:
            self._trace.event(self.shell.loop.time(), name, **data)

    # --- keepalive ------------------------------------------------------------------------------------------
    def set_keepalive(self, idle_s: float | None, probes: int = 3) -> None:
        """Ask for a sign of life when nothing came for a while, and give streams up whose peer gives none.

        After `idle_s` of silence a PING goes out, and the next after as long again; after `probes` that
        nothing answers all streams count as lost: they are opened again or the connection is lost, as
        otherwise. The kernel does the same for each stream (SO_KEEPALIVE), so that one whose path broke is
        found though others are used.

        Args:
            idle_s: Seconds; None: no more.
            probes: How many may go unanswered.

        Raises:
            LocalProtocolError: The values make no sense.
        """
        if idle_s is not None and not 0.01 <= idle_s <= 32_767:
            raise LocalProtocolError(f"idle_s is 0.01 to 32767 seconds or None, not {idle_s!r}")
        if not 1 <= probes <= 127:
            raise LocalProtocolError(f"probes is 1 to 127, not {probes!r}")
        self._idle_s, self._probes = idle_s, probes
        if self.shell.is_closed:
            return
        for index, stream in enumerate(self.shell.streams):
            if self.shell.core.alive >> index & 1:
                self.keep_alive(stream)
        if not self.shell.is_plain:
            self.shell.core.set_keepalive(None if idle_s is None else round(idle_s * 1e9), probes)
            self.shell.settle()

    def keep_alive(self, stream: OpenStream) -> None:
        """Have the kernel look after a stream, if the application wants it."""
        if self._idle_s is not None or self._probes:
            sockets.set_keepalive(stream.sock, self._idle_s, self._probes)

    def note_end(self, error: BaseException | None) -> None:
        """Tell the trace, and end it."""
        self.note_event("connection_closed", reason=error and str(error))
        if self._trace_timer is not None:
            self._trace_timer.cancel()
        if self._trace is not None:
            self._trace.close()


def _told(stream: StreamInfo) -> dict[str, Any]:
    return {
        "stream": stream.index,
        "source_port": stream.source_port,
        "rate_bps": stream.rate_bps,
        "path": stream.path,
    }
