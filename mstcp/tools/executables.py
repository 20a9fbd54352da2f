"""What a command's file says about how it makes system calls."""

from __future__ import annotations

import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

_INTERPRETER, _NOTE = 3, 4
"""PT_INTERP and PT_NOTE of elf(5)."""
_HEADER = struct.Struct("=4sBB10x2xH4x8xQ8x4x2xHH")
"""Of a 64-bit ELF file: magic, class, byte order, machine; place, size and number of the segment headers."""
_SEGMENT = struct.Struct("=I4xQ16xQ16x")
"""Kind, offset, size in the file."""


def uses_libc(command: str) -> bool:
    """Return whether a command connects by libc's `connect`, as far as its file tells.

    Static programs and those of Go make system calls of their own, and programs for another machine than this
    interpreter's cannot load its libraries. Of a script its interpreter counts.
    """
    found = shutil.which(command)
    if found is None:
        return True
    try:
        with Path(found).open("rb") as file:
            head = file.read(1 << 16)
    except OSError:
        return True
    if head.startswith(b"#!"):
        interpreter = _interpreter(head)
        return interpreter in (None, found) or uses_libc(str(interpreter))
    if not head.startswith(b"\x7fELF"):
        return True
    segments = list(_segments(head))
    is_go = any(kind == _NOTE and b"Go\0\0" in head[at : at + size] for kind, at, size in segments)
    return not is_go and any(kind == _INTERPRETER for kind, _, _ in segments)


def _interpreter(head: bytes) -> str | None:
    words = head[2:].partition(b"\n")[0].decode(errors="replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def _segments(head: bytes) -> Iterator[tuple[int, int, int]]:
    """Return kind, offset and size of each segment; none of a file for another kind of machine."""
    with Path(sys.executable).open("rb") as own:
        ours = _HEADER.unpack(own.read(_HEADER.size))
    if len(head) < _HEADER.size:
        return
    theirs = _HEADER.unpack_from(head)
    if theirs[:4] != ours[:4]:
        return
    start, size, count = theirs[4:]
    for at in range(start, start + size * count, size):
        if at + _SEGMENT.size <= len(head):
            yield _SEGMENT.unpack_from(head, at)
