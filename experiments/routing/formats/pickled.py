"""Pickled NumPy arrays, as Teal's traffic matrices are, read without running anything.

Python's own unpickler calls what a file names. This reader goes through the file's operations itself and
builds no object but numbers, texts, bytes and tuples; a call is remembered, not made. What is then there has
to be a NumPy array of numbers, as NumPy 1 and 2 pickle it (protocols 0 to 5), and is put together from its
bytes.
"""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.errors import ScenarioError
from experiments.routing.formats.numpy_arrays import read_matrix
from experiments.routing.formats.reading import Context, ReadDemands

NAME = "pickled NumPy"
SUFFIXES = (".pkl", ".pickle")
RECONSTRUCT = {("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")}
FROM_BUFFER = {("numpy.core.numeric", "_frombuffer"), ("numpy._core.numeric", "_frombuffer")}
DTYPE = ("numpy", "dtype")
ENCODE = ("_codecs", "encode")
_NUMBERS = re.compile(r"[<>|=]?[fiu][1248]")


class NotAnArray(ValueError):
    """The file is no pickled array of numbers; its text says what it is instead."""


@dataclass(frozen=True)
class Name:
    """Something that the file names, such as a function of a module."""

    module: str
    name: str

    @property
    def pair(self) -> tuple[str, str]:
        """Module and name."""
        return self.module, self.name


@dataclass
class Call:
    """A call that the file asks for, which is not made; `state` is what it would then be given."""

    function: Any
    arguments: Any
    state: Any = None


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
        result = _Machine().run(content)
    except NotAnArray:
        raise
    except (ValueError, IndexError, KeyError, TypeError, UnicodeDecodeError, AttributeError) as error:
        raise NotAnArray(f"the pickle is damaged ({error})") from None
    return _array(result)


class _Machine:
    """The stack machine that a pickle is a programme for, without any calls."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(content):
            name = opcode.name
            if name == "STOP":
                return self._stack.pop()
            if name in _VALUES:
                self._stack.append(argument)
            elif name in _CONSTANTS:
                self._stack.append(_CONSTANTS[name])
            elif name in _TUPLES:
                self._tuple_of(_TUPLES[name])
            elif name in _ACTIONS:
                _ACTIONS[name](self, argument)
            elif name not in _IGNORED:
                raise NotAnArray(f"it holds {name}, which no array of numbers needs")
        raise NotAnArray("it has no end")

    def _pop_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def _tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._pop_mark()))

    def _tuple_of(self, count: int) -> None:
        items = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        self._stack.append(items)

    def _memoize(self, number: Any) -> None:
        self._memo[len(self._memo) if number is None else int(number)] = self._stack[-1]

    def _recall(self, number: Any) -> None:
        self._stack.append(self._memo[int(number)])

    def _global(self, argument: Any) -> None:
        module, _, name = str(argument).partition(" ")
        self._stack.append(Name(module, name))

    def _stack_global(self, _: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self._stack.append(Name(str(module), str(name)))

    def _reduce(self, _: Any) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, Name):
            raise NotAnArray("it calls what it has made itself")
        if function.pair not in {*RECONSTRUCT, *FROM_BUFFER, DTYPE, ENCODE}:
            raise NotAnArray(f"it wants to call {function.module}.{function.name}, which is not done")
        self._stack.append(Call(function, arguments))

    def _build(self, _: Any) -> None:
        state = self._stack.pop()
        if not isinstance(self._stack[-1], Call):
            raise NotAnArray("it changes what is no array")
        self._stack[-1].state = state


_VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING",
    "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE",
    "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
}  # fmt: skip
_IGNORED = {"PROTO", "FRAME"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_ACTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine._mark,
    "TUPLE": _Machine._tuple,
    "MEMOIZE": _Machine._memoize,
    "PUT": _Machine._memoize,
    "BINPUT": _Machine._memoize,
    "LONG_BINPUT": _Machine._memoize,
    "GET": _Machine._recall,
    "BINGET": _Machine._recall,
    "LONG_BINGET": _Machine._recall,
    "GLOBAL": _Machine._global,
    "STACK_GLOBAL": _Machine._stack_global,
    "REDUCE": _Machine._reduce,
    "BUILD": _Machine._build,
}


def _array(call: Any) -> NDArray[Any]:
    """Return the array that calls as NumPy pickles them stand for."""
    if not isinstance(call, Call):
        raise NotAnArray(f"it is a {type(call).__name__}")
    try:
        if call.function.pair in RECONSTRUCT:
            _, shape, dtype, is_fortran, data = call.state
            order = "F" if is_fortran else "C"
        elif call.function.pair in FROM_BUFFER:
            data, dtype, shape, order = call.arguments
        else:
            raise NotAnArray(f"it is a {call.function.name}")
        return _put_together(_bytes(data), _dtype(dtype), tuple(shape), str(order))
    except (TypeError, ValueError) as error:
        if isinstance(error, NotAnArray):
            raise
        raise NotAnArray(f"its parts are not those of an array ({error})") from None


def _put_together(data: bytes, dtype: np.dtype[Any], shape: tuple[Any, ...], order: str) -> NDArray[Any]:
    if order not in ("C", "F") or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise NotAnArray("its shape is not one")
    count = 1
    for extent in shape:
        count *= extent
    if count * dtype.itemsize != len(data):
        raise NotAnArray(f"it has {len(data)} bytes where its shape needs {count * dtype.itemsize}")
    return np.frombuffer(data, dtype).reshape(shape, order="C" if order == "C" else "F")


def _bytes(data: Any) -> bytes:
    if isinstance(data, Call) and data.function.pair == ENCODE:
        text, encoding = data.arguments  # how protocols 0 to 2 write bytes
        if encoding != "latin1" or not isinstance(text, str):
            raise NotAnArray("its bytes are encoded in another way than Python does")
        return text.encode("latin-1")
    if isinstance(data, str):  # Python 2
        return data.encode("latin-1")
    if isinstance(data, bytes | bytearray):
        return bytes(data)
    raise NotAnArray("it holds Python objects")


def _dtype(dtype: Any) -> np.dtype[Any]:
    if not (isinstance(dtype, Call) and dtype.function.pair == DTYPE and isinstance(dtype.state, tuple)):
        raise NotAnArray("its type is none of NumPy's")
    kind, order = dtype.arguments[0], dtype.state[1]
    if isinstance(kind, bytes):
        kind = kind.decode("ascii")
    text = f"{order if order in ('<', '>') else ''}{kind}"
    if not _NUMBERS.fullmatch(text):
        raise NotAnArray(f"it holds {kind}, not numbers")
    return np.dtype(text)
