"""Log lines: text for people, or one line of JSON per event for programs."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timezone

_FLUSH_S = 1.0
_PAUSE_S = 0.01
_MAX_AT_ONCE = 256
"""Lines that are written by one call, at most."""

_MAX_KINDS = 256


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__()
        self._second, self._text = 0, ""

    def format(self, record: logging.LogRecord) -> str:
        second = int(record.created)
        if second != self._second:  # most of the time is made once a second
            self._second = second
            self._text = time.strftime(self.default_time_format, self.converter(record.created))
        line = f"{self._text},{int(record.msecs):03d} {record.levelname:<7} {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


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

    Lines for which there is no room are dropped, and how many were is written once there is. `write` may take
    its time; `capacity` lines may wait.
    """

    def __init__(self, write: Callable[[list[logging.LogRecord]], None], capacity: int = 10_000) -> None:
        super().__init__()
        self._write_lines = write
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
                waiting = min(len(self._lines), _MAX_AT_ONCE)
                self._write_lines([self._lines.popleft() for _ in range(waiting)])
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                text = "%d lines were dropped, since nobody read the log"
                missing = logging.LogRecord(
                    "controller", logging.WARNING, __file__, 0, text, (dropped,), None
                )
                self._write_lines([missing])
            if not self._stopping:
                time.sleep(_PAUSE_S)  # to wake up once for many lines


class SparingLog:
    """Writes warnings of which a stranger can cause any number: each kind once in a while, and how often."""

    def __init__(
        self, log: logging.Logger, interval_s: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._interval_s = interval_s
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}  # when a kind may be written again; how many were not

    def warning(self, kind: str, text: str, *arguments: object) -> None:
        """Write a line, unless one of its kind was written a moment ago."""
        now = self._clock()
        until, left_out = self._kinds.get(kind, (now, 0))
        if now < until:
            self._kinds[kind] = until, left_out + 1
            return
        if len(self._kinds) >= _MAX_KINDS:
            self._kinds.clear()
        self._kinds[kind] = now + self._interval_s, 0
        more = f" ({left_out} more such lines were left out)" if left_out else ""
        self._log.warning(text + more.replace("%", "%%"), *arguments)


def set_up(form: str, level: int = logging.INFO) -> LogWriter:
    """Send log lines to standard error; stop what is returned at the end.

    Libraries are heard from warnings on.
    """
    formatter = _JsonFormatter() if form == "json" else _TextFormatter()

    def write(records: list[logging.LogRecord]) -> None:
        with contextlib.suppress(OSError):  # nobody is there to be told
            sys.stderr.write("".join([formatter.format(record) + "\n" for record in records]))
            sys.stderr.flush()

    # What no line shows is not looked up (Python's logging documentation, "Optimization").
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    writer = LogWriter(write)
    logging.basicConfig(level=logging.WARNING, handlers=[writer], force=True)
    logging.getLogger("controller").setLevel(level)
    return writer
