"""What happened, numbered, for readers who come and go: each asks for what came after the last it saw."""

from __future__ import annotations

import heapq
import itertools
import json
import operator
import threading
from collections import deque
from collections.abc import Callable, Mapping, Reversible
from dataclasses import dataclass
from typing import Any

VALUES_KEPT = 400_000
"""Values kept of the samples of one run."""
MAX_SAMPLES, MIN_SAMPLES = 2400, 60


@dataclass(frozen=True)
class Entry:
    """One thing that happened, as JSON; numbers begin at 1 and rise."""

    number: int
    text: str


class EventLog:
    """Keeps entries for readers; any thread may add and read.

    Transient entries of a run (samples, and what a later entry replaces) are dropped at its end, and samples
    are bounded: the log grows with the number of runs alone.
    """

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        """Called after each addition, by the thread that made it."""
        self._lock = threading.Lock()
        self._last = 0
        self._lasting: list[Entry] = []
        self._samples: dict[int, deque[Entry]] = {}
        self._latest: dict[tuple[int, str], Entry] = {}

    def add(self, fields: Mapping[str, Any]) -> None:
        """Add what stays."""
        self._append(fields, self._lasting.append)

    def add_sample(self, run: int, fields: Mapping[str, Any], values: int) -> None:
        """Add a sample of a run, of this number of values; the oldest are dropped when there are too many."""
        most = max(MIN_SAMPLES, min(MAX_SAMPLES, VALUES_KEPT // max(1, values)))
        samples = self._samples.setdefault(run, deque(maxlen=most))
        self._append(fields, samples.append)

    def add_latest(self, run: int, kind: str, fields: Mapping[str, Any]) -> None:
        """Add what replaces the last of its kind of a run."""

        def keep(entry: Entry) -> None:
            self._latest[run, kind] = entry

        self._append(fields, keep)

    def drop_transient(self, run: int) -> None:
        """Drop the transient entries of a run that is over or is rerun."""
        with self._lock:
            self._samples.pop(run, None)
            self._latest = {key: entry for key, entry in self._latest.items() if key[0] != run}

    def after(self, number: int, most: int = 500) -> list[Entry]:
        """Return at most `most` entries after a number, the oldest first."""
        with self._lock:
            latest = sorted(self._latest.values(), key=_number)
            parts = [_newer(part, number) for part in (self._lasting, latest, *self._samples.values())]
        return list(heapq.merge(*parts, key=_number))[:most]

    def _append(self, fields: Mapping[str, Any], keep: Callable[[Entry], None]) -> None:
        with self._lock:
            self._last += 1
            keep(Entry(self._last, json.dumps(fields, separators=(",", ":"), allow_nan=False)))
        self.changed()


def _newer(entries: Reversible[Entry], number: int) -> list[Entry]:
    """Return the entries after a number; `entries` has them in order and is read from its end."""
    return list(itertools.takewhile(lambda entry: entry.number > number, reversed(entries)))[::-1]


_number = operator.attrgetter("number")
