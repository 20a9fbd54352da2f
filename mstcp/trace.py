"""A connection's life as a qlog-style trace: JSON text sequences (RFC 7464) that qlog's tools read.

Events: `connection_started`, `stream_added`, `stream_lost`, `stream_removed`, `rates_set`, `metrics` (ten
times a second) and `connection_closed`. Times are milliseconds since the trace began.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, TextIO

from mstcp.errors import LocalProtocolError
from mstcp.stats import ConnectionStats

LOGGER = logging.getLogger("mstcp")

INTERVAL_S = 0.1
"""How often metrics are written."""


class Trace:
    """Writes the events of one connection; what cannot be written ends the trace and not the connection.

    Args:
        path: The file; a folder gets a file named after the connection.
        name: Of the connection, without suffix.
        vantage: `client` or `server`.
        now_s: The event loop's time.
    """

    def __init__(self, path: str | Path, name: str, vantage: str, now_s: float) -> None:
        self._begun_s = now_s
        self._file: TextIO | None = None
        place = Path(path)
        try:
            if place.is_dir():
                place = place / f"{name}-{vantage}.sqlog"
            self._file = place.open("w")
        except OSError as error:
            raise LocalProtocolError(f"the trace {place} cannot be written: {error.strerror}") from error
        self._write(
            {
                "qlog_version": "0.4",
                "qlog_format": "JSON-SEQ",
                "title": "mstcp",
                "trace": {
                    "vantage_point": {"type": vantage},
                    "common_fields": {"group_id": name, "time_format": "relative", "reference_time": 0},
                },
            }
        )

    def event(self, now_s: float, name: str, **data: Any) -> None:
        """Note that something happened."""
        if self._file is not None:
            time_ms = round((now_s - self._begun_s) * 1e3, 3)
            self._write({"time": time_ms, "name": f"mstcp:{name}", "data": data})

    def metrics(self, stats: ConnectionStats) -> None:
        """Note how the connection is."""
        if self._file is None:
            return
        total = stats.total
        streams = [
            {
                "stream": stream.info.index,
                "stalled": stream.is_stalled,
                "bytes_sent": stream.carried.bytes_sent,
                "bytes_received": stream.carried.bytes_received,
                "resent_bytes": stream.carried.resent_bytes,
                "smoothed_rtt": _ms(stream.tcp.rtt_us),
                "rtt_variance": _ms(stream.tcp.rttvar_us),
                "congestion_window_packets": stream.tcp.cwnd,
                "retransmits": stream.tcp.retransmits,
                "delivery_rate_bps": stream.tcp.delivery_rate_bps,
            }
            for stream in stats.streams
            if stream.is_alive
        ]
        self.event(
            stats.at_s,
            "metrics",
            sent_bps=stats.sent_bps,
            received_bps=stats.received_bps,
            reorder_bytes=total.reorder_bytes,
            queued_bytes=total.queued_bytes,
            unacknowledged_bytes=total.unacknowledged_bytes,
            streams=streams,
        )

    def close(self) -> None:
        """Write what is left."""
        file, self._file = self._file, None
        if file is not None:
            self._end(file)

    def _write(self, record: dict[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write("\x1e" + json.dumps(record, separators=(",", ":")) + "\n")
        except (OSError, ValueError) as error:
            LOGGER.warning("the trace ends here, the connection goes on: %s", error)
            file, self._file = self._file, None
            self._end(file)

    @staticmethod
    def _end(file: TextIO) -> None:
        try:
            file.close()
        except OSError as error:
            LOGGER.warning("the end of a trace could not be written: %s", error)


def _ms(value_us: int | None) -> float | None:
    return None if value_us is None else value_us / 1e3
