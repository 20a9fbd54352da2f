"""A file of finished runs, a line each, from which what was stopped goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from experiments.model.atomic_files import output_errors


class Journal:
    """Keeps lines; each is on the disk before the next is counted."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, line: str) -> None:
        """Keep a line, which has no line break; OutputError if that fails."""
        with output_errors(self._path), self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers from 1.

        One that was being written when the machine stopped is dropped, from the file too; OutputError if the
        file cannot be read.
        """
        with output_errors(self._path):
            if not self._path.exists():
                return
            text = self._path.read_bytes()
            whole = text[: text.rfind(b"\n") + 1]
            if len(whole) < len(text):
                self._path.write_bytes(whole)
        yield from enumerate(whole.splitlines(), start=1)
