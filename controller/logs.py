"""Log lines: text for people, or one line of JSON per event for programs."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import deque
from datetime import datetime, timezone

__all__ = ["LogWriter", "set_up"]

_FLUSH_S = 1.0
_PAUSE_S = 0.01


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
        self._lines: deque[logging.LogRecord] = deque()
        self._capacity = capacity
        self._arrived = threading.Event()
        self._stopping = False
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="controller-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line, or drop it."""
        if len(self._lines) >= self._capacity:
            self._dropped += 1
            return
        self._lines.append(record)
        if not self._arrived.is_set():
            self._arrived.set()

    def stop(self) -> None:
        """Write what is queued, unless that takes more than a second."""
        self._stopping = True
        self._arrived.set()
        self._thread.join(_FLUSH_S)

    def _write(self) -> None:
        while not self._stopping or self._lines:
            self._arrived.wait()
            self._arrived.clear()
            while self._lines:
                self._target.handle(self._lines.popleft())
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                text = "%d lines were dropped, since nobody read the log"
                missing = logging.LogRecord(
                    "controller", logging.WARNING, __file__, 0, text, (dropped,), None
                )
                self._target.handle(missing)
            if not self._stopping:
                time.sleep(_PAUSE_S)  # to wake up once for many lines


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
