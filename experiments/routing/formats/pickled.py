"""Pickled NumPy arrays, as Teal's traffic matrices are, read without running anything.

Python's unpickler calls what a file names; here every name stands for a `Call`, which remembers what it was
given. What is then there has to be a NumPy array of numbers, as NumPy 1 and 2 pickle it (protocols 0 to 5),
and is put together from its bytes.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.errors import ScenarioError
from experiments.routing.formats.numpy_arrays import read_matrix
from experiments.routing.formats.reading import Context, ReadDemands

NAME = "pickled NumPy"
SUFFIXES = (".pkl", ".pickle")
RECONSTRUCT = {"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"}
FROM_BUFFER = {"numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"}
DTYPE, ENCODE = "numpy.dtype", "_codecs.encode"
KNOWN = {*RECONSTRUCT, *FROM_BUFFER, DTYPE, ENCODE, "numpy.ndarray"}
_NUMBERS = re.compile(r"[<>|=]?[fiu][1248]")


class NotAnArray(ValueError):
    """The file is no pickled array of numbers; its text says what it is instead."""


class Call:
    """A call that the file asks for, which is not made; `state` is what its result would then be given."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self.name, self.arguments = name, arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a function or class."""
        if f"{module}.{name}" not in KNOWN:
            raise NotAnArray(f"it wants to call {module}.{name}, which is not done")
        return partial(Call, f"{module}.{name}")


def recognises(path: Path, content: bytes) -> bool:
    """Return whether a file is a pickle."""
    return path.suffix.lower() in SUFFIXES or (content[:1] == b"\x80" and content[-1:] == b".")


def read(file: str, content: bytes, context: Context) -> ReadDemands:
    """Return the demands of a file (ScenarioError: it is anything but an array of numbers)."""
    try:
        array = load_array(content)
    except NotAnArray as error:
        raise ScenarioError(file, "", f"is not a pickled NumPy array of numbers: {error}") from None
    return read_matrix(array, None, file, context)


def load_array(content: bytes) -> NDArray[Any]:
    """Return the array that was pickled (NotAnArray: it is anything else)."""
    try:
        # As no length is, no number of an object is beyond the file: memory is taken for all before it.
        if any(
            "PUT" in opcode.name and int(argument or 0) > len(content)
            for opcode, argument, _ in pickletools.genops(content)
        ):
            raise NotAnArray("it numbers what it does not hold")
        return _array(_Unpickler(io.BytesIO(content), encoding="latin1").load())
    except NotAnArray:
        raise
    except Exception as error:
        raise NotAnArray(f"the pickle is damaged ({error})") from None


def _array(call: Any) -> NDArray[Any]:
    """Return the array that calls as NumPy pickles them stand for."""
    if not isinstance(call, Call):
        raise NotAnArray(f"it is a {type(call).__name__}")
    if call.name in RECONSTRUCT:
        _, shape, dtype, is_fortran, data = call.state
        order = "F" if is_fortran else "C"
    elif call.name in FROM_BUFFER:
        data, dtype, shape, order = call.arguments
    else:
        raise NotAnArray(f"it is a {call.name}")
    kind, data = _dtype(dtype), _bytes(data)
    if order not in ("C", "F") or not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        raise NotAnArray("its shape is not one")
    if (needed := math.prod(shape) * kind.itemsize) != len(data):
        raise NotAnArray(f"it has {len(data)} bytes where its shape needs {needed}")
    array: NDArray[Any] = np.frombuffer(data, kind).reshape(shape, order="C" if order == "C" else "F")
    return array


def _bytes(data: Any) -> bytes:
    if isinstance(data, Call) and data.name == ENCODE:
        data, encoding = data.arguments  # how protocols 0 to 2 write bytes
        if encoding != "latin1":
            raise NotAnArray("its bytes are encoded in another way than Python does")
    if isinstance(data, str):  # also Python 2
        return data.encode("latin-1")
    if isinstance(data, bytes | bytearray):
        return bytes(data)
    raise NotAnArray("it holds Python objects")


def _dtype(dtype: Any) -> np.dtype[Any]:
    if not (isinstance(dtype, Call) and dtype.name == DTYPE and isinstance(dtype.state, tuple)):
        raise NotAnArray("its type is none of NumPy's")
    kind, order = dtype.arguments[0], dtype.state[1]
    text = f"{order if order in ('<', '>') else ''}{kind}"
    if not _NUMBERS.fullmatch(text):
        raise NotAnArray(f"it holds {kind}, not numbers")
    return np.dtype(text)
