"""Log lines: text for people, or one line of JSON per event for programs."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import sys
import threading
import time
from datetime import datetime, timezone

__all__ = ["LogWriter", "set_up"]

_FLUSH_S = 1.0


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        entry.update(getattr(record, "data", {}))
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


class LogWriter(logging.Handler):
    """Writes lines from a thread of its own, so that nobody waits for the reader of standard error.

    Lines for which there is no room are dropped, and how many were is written once there is.
    """

    def __init__(self, target: logging.Handler, capacity: int = 10_000) -> None:
        super().__init__()
        self._target = target
        self._lines: queue.Queue[logging.LogRecord | None] = queue.Queue(capacity)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="controller-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line, or drop it."""
        try:
            self._lines.put_nowait(record)
        except queue.Full:
            self._dropped += 1

    def stop(self) -> None:
        """Write what is queued, unless that takes more than a second."""
        deadline = time.monotonic() + _FLUSH_S
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=_FLUSH_S)
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _write(self) -> None:
        while (record := self._lines.get()) is not None:
            self._target.handle(record)
            if self._dropped and self._lines.qsize() == 0:
                dropped, self._dropped = self._dropped, 0
                text = "%d lines were dropped, since nobody read the log"
                missing = logging.LogRecord(
                    "controller", logging.WARNING, __file__, 0, text, (dropped,), None
                )
                self._target.handle(missing)


def set_up(form: str, level: int = logging.INFO) -> LogWriter:
    """Send log lines to standard error; stop what is returned at the end.

    Args:
        form: `text` or `json`.
        level: Least level of our own lines; libraries are heard from warnings on.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    writer = LogWriter(handler)
    logging.basicConfig(level=logging.WARNING, handlers=[writer], force=True)
    logging.getLogger("controller").setLevel(level)
    return writer
