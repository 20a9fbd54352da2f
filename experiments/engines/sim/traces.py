"""Files of traces: what the simulator hands over piece by piece is appended, and Parquet made of the CSV.

Imports nothing but what it needs for the files asked for: it runs in the simulation's process.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from experiments.model.atomic_files import atomic_file

ROWS = "packets.csv"
PARQUET = "packets.parquet"


class TraceNotWritten(Exception):
    """A file of a trace could not be written; the text says where and why."""


class TraceFiles:
    """Writes the files of one run into a folder; a context manager.

    Files that are there are replaced. What cannot be written whole is removed, so that a disk that is full
    has room for the results.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, BinaryIO] = {}
        self._files = ExitStack()

    def __enter__(self) -> TraceFiles:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failure(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._files.close()
        except OSError as failure:
            error = self._failure(failure)
        if isinstance(error, TraceNotWritten):
            for name in self._open:
                (self._folder / name).unlink(missing_ok=True)
            with suppress(OSError):
                self._folder.rmdir()
            raise error

    def __call__(self, name: str, piece: bytes) -> None:
        """Append the next bytes of a file (TraceNotWritten: no room, or the folder takes no files)."""
        try:
            if name not in self._open:
                self._open[name] = self._files.enter_context((self._folder / name).open("wb"))
            self._open[name].write(piece)
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> TraceNotWritten:
        return TraceNotWritten(f"its traces cannot be written to {self._folder}: {error.strerror or error}")


def to_parquet(folder: Path, *, keep_csv: bool) -> None:
    """Make packets.parquet of packets.csv, block by block (ModuleNotFoundError: pyarrow is not installed)."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pa_parquet

    text = {name: pa.string() for name in ("link", "flow", "direction", "flags", "fate")}
    times = {name: pa.float64() for name in ("time_s", "arrival_s")}
    numbers = (
        "packet", "stream", "sequence", "acknowledgement", "payload_bytes", "packet_bytes", "window_bytes",
        "resent",
    )  # fmt: skip
    types = {**text, **times, **dict.fromkeys(numbers, pa.int64())}
    source = folder / ROWS
    reader = pa_csv.open_csv(source, convert_options=pa_csv.ConvertOptions(column_types=types))
    with atomic_file(folder / PARQUET) as partial, pa_parquet.ParquetWriter(partial, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    if not keep_csv:
        source.unlink()
