"""Files of traces: what the simulator hands over piece by piece is appended, and Parquet made of the CSV.

Imports nothing but what it needs for the files asked for: it runs in the simulation's process.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

ROWS = "packets.csv"
PARQUET = "packets.parquet"


class TraceFiles:
    """Writes the files of one run into a folder; a context manager. Files that are there are replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, BinaryIO] = {}
        self._files = ExitStack()

    def __enter__(self) -> TraceFiles:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def __call__(self, name: str, piece: bytes) -> None:
        """Append the next bytes of a file."""
        if name not in self._open:
            self._open[name] = self._files.enter_context((self._folder / name).open("wb"))
        self._open[name].write(piece)


def to_parquet(folder: Path, *, keep_csv: bool) -> None:
    """Make packets.parquet of packets.csv, block by block.

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
    """
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
    with pa_parquet.ParquetWriter(folder / PARQUET, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    if not keep_csv:
        source.unlink()
