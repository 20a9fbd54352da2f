"""A line on the terminal that tells how far a transfer is; nothing where there is no terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_INTERVAL_S = 0.1
_WIDTH = 30


def readable_bytes(count: float) -> str:
    """Return a number of bytes as people read it, as `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def progress_line(done: int, total: int | None, elapsed_s: float) -> str:
    """Return the line for `done` of `total` bytes (None: not known) after `elapsed_s` seconds."""
    rate = f"{done * 8 / elapsed_s / 1e6:.1f} Mbit/s" if elapsed_s > 0 else ""
    if not total:
        return f"{readable_bytes(done)}  {rate}"
    share = min(done / total, 1.0)
    bar = "#" * round(share * _WIDTH)
    left = f"  {(total - done) * elapsed_s / done:.0f} s left" if done else ""
    return f"[{bar:<{_WIDTH}}] {share:4.0%}  {readable_bytes(done)}  {rate}{left}"


class Progress:
    """Shows a transfer's progress while it runs; use as a context manager.

    Args:
        total: Bytes in all; None if that is not known.
        stream: Where to write; only a terminal gets anything.
    """

    def __init__(self, total: int | None, stream: TextIO | None = None) -> None:
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._shows = self._stream.isatty()
        self._begun_s = self._shown_s = time.monotonic()
        self._length = 0
        self.done = 0

    def add(self, count: int) -> None:
        """Note that `count` bytes more are done."""
        self.done += count
        now_s = time.monotonic()
        if self._shows and now_s - self._shown_s >= _INTERVAL_S:
            self._shown_s = now_s
            self._show(progress_line(self.done, self._total, now_s - self._begun_s))

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun_s

    def _show(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._length))
        self._stream.flush()
        self._length = len(line)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._length:
            self._show("")
            self._stream.write("\r")
            self._stream.flush()
