"""Traffic matrices as NumPy saves them: `.npy`, or `.npz` with one matrix and perhaps names as `nodes`.

Arrays of Python objects are refused: to read them is to run what the file says.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.errors import ScenarioError
from experiments.routing.formats.reading import Context, ReadDemands, of_matrix, order_of

NAME = "NumPy"
NODES = "nodes"


def recognises(path: Path, content: bytes) -> bool:
    """Return whether a file was saved by NumPy."""
    return path.suffix.lower() in (".npy", ".npz") or content.startswith(b"\x93NUMPY")


def read(file: str, content: bytes, context: Context) -> ReadDemands:
    """Return the demands of a file (ScenarioError: it cannot be used)."""
    try:
        loaded: Any = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return read_matrix(loaded, None, file, context)
        arrays = {name: loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        reason = "holds Python objects, which are not read" if "pickle" in str(error) else str(error)
        raise ScenarioError(
            file, "", f"is not an array of numbers that NumPy saved: {reason.splitlines()[0]}"
        ) from None
    nodes = arrays.pop(NODES, None)
    if len(arrays) != 1:
        reason = (
            f"holds {len(arrays)} arrays ({', '.join(arrays)}); save one matrix, and the names as {NODES}"
        )
        raise ScenarioError(file, "", reason)
    names = None
    if nodes is not None:
        names = tuple(context.end(str(name), file, NODES) for name in nodes.ravel().tolist())
        if len(set(names)) < len(names):
            raise ScenarioError(file, NODES, "names a node twice")
    return read_matrix(next(iter(arrays.values())), names, file, context)


def read_matrix(
    array: NDArray[Any], names: tuple[str, ...] | None, file: str, context: Context
) -> ReadDemands:
    """Return the demands of an array (ScenarioError: it is no square matrix of rates for the nodes)."""
    if array.dtype.kind not in "fiu":
        raise ScenarioError(file, "", f"holds {array.dtype}, not numbers")
    if array.ndim == 3:
        reason = f"holds {array.shape[0]} matrices; save one of them"
        raise ScenarioError(file, "", reason)
    if array.ndim == 2 and names is None:
        names = order_of(array.shape[0], context, file)
    unit_bps = context.bare_unit_bps(file)
    return of_matrix(array.astype(np.float64), names or (), unit_bps, file, context.unit_notes())
