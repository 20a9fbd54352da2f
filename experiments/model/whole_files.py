"""Files that are there whole or not at all, also when the disk is full or the program ends midway."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
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


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, text in UTF-8; raises OSError."""
    with whole_file(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
