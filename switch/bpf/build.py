"""Compiles the BPF programs: `python -m switch.bpf.build`. Does nothing where an object is of its source.

The objects are shipped, so that only who changes a source needs clang. Each carries the hash of its source
and of the headers beside it, which says more than the times of files that came out of a repository.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from switch.errors import BpfUnavailable, CommandFailed, SwitchError
from switch.packet_digest import digest
from switch.ppfs import splitter
from switch.tcp import controls

OBJECTS = (splitter.OBJECT, digest.OBJECT, controls.OBJECT)
INSTALL = "apt-get install clang llvm libbpf-dev linux-libc-dev"
# v3 (5.1 and later) has 32-bit comparisons.
FLAGS = ("-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3")


def source_of(compiled: Path) -> Path:
    """Return the source of an object."""
    return compiled.with_suffix(".c")


def source_sha256(source: Path) -> str:
    """Return the hash of a source and the headers beside it, as its object carries it."""
    text = source.read_bytes()
    names = re.findall(r'^#include "(.+)"$', text.decode(), re.MULTILINE)
    headers = [source.with_name(name) for name in names]
    parts = [text, *(header.read_bytes() for header in headers if header.exists())]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def is_current(compiled: Path, source: Path | None = None) -> bool:
    """Return whether an object is there and of its source."""
    wanted = source_sha256(source or source_of(compiled))
    return compiled.is_file() and wanted.encode() in compiled.read_bytes()


def build(source: Path, compiled: Path) -> None:
    """Compile a source.

    Raises:
        BpfUnavailable: clang is missing.
        CommandFailed: with what clang said.
    """
    if shutil.which("clang") is None:
        raise BpfUnavailable(f"{compiled.name} is not of {source.name}, and clang is missing", INSTALL)
    made = compiled.with_suffix(".new").absolute()
    # Debian and Ubuntu keep <asm/types.h> in the folder of the machine's architecture.
    headers = f"/usr/include/{platform.machine()}-linux-gnu"
    command = ["clang", *FLAGS, "-idirafter", headers, f"-fdebug-prefix-map={source.parent}=."]
    command += [f'-DSOURCE_SHA256="{source_sha256(source)}"', "-c", source.name, "-o", str(made)]
    _run(command, source.parent)
    # The DWARF goes, the BTF that describes the maps stays.
    strip = shutil.which("llvm-strip")
    if strip:
        _run([strip, "-g", str(made)], source.parent)
    made.replace(compiled)


def main() -> None:
    """Compile what needs it, and say so."""
    for compiled in OBJECTS:
        if is_current(compiled):
            continue
        try:
            build(source_of(compiled), compiled)
        except SwitchError as failure:
            sys.exit(f"switch.bpf.build: {failure}")
        sys.stdout.write(f"compiled {compiled.name}\n")


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=60)
    if done.returncode:
        raise CommandFailed(command, done.stderr)


if __name__ == "__main__":
    main()
