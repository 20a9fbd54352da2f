"""Files that are there whole or not at all, also when the disk is full or the program ends midway."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.errors import OutputError


@contextmanager
def output_errors(path: Path, option: str = "--out") -> Iterator[None]:
    """Say of an OSError in this block that what an option names cannot be written (OutputError)."""
    try:
        yield
    except OSError as error:
        # Not its own words: those of pyarrow name functions.
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OutputError(str(path), reason, option) from None


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it takes the place of `path` at the end of the block.

    If the block raises, `path` stays as it was and nothing is left beside it.

    Raises:
        OSError: The file cannot be renamed.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, text in UTF-8; raises OSError."""
    with atomic_file(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)


def write_output(path: Path, content: str | bytes, option: str = "--out") -> None:
    """Write a file as `write_atomically` does (OutputError: it cannot be written where an option says)."""
    with output_errors(path, option):
        write_atomically(path, content)
