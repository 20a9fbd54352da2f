"""Compiles the splitter: `python -m switch.ppfs.build`. Does nothing where the object is of the source.

The object is shipped, so that only who changes the source needs clang. It carries the hash of its source,
which says more than the times of files that came out of a repository.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from switch.errors import BpfUnavailable, CommandFailed, SwitchError
from switch.ppfs.splitter import OBJECT

SOURCE = OBJECT.with_suffix(".c")
INSTALL = "apt-get install clang llvm linux-libc-dev"
# v3 (5.1 and later) has 32-bit comparisons.
FLAGS = ("-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3")


def source_sha256(source: Path = SOURCE) -> str:
    """Return the hash of the source, as the object carries it."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


def is_current(compiled: Path = OBJECT, source: Path = SOURCE) -> bool:
    """Return whether the object is there and of this source."""
    return compiled.is_file() and source_sha256(source).encode() in compiled.read_bytes()


def build(compiled: Path = OBJECT) -> None:
    """Compile the source.

    Raises:
        BpfUnavailable: clang is missing.
        CommandFailed: with what clang said.
    """
    if shutil.which("clang") is None:
        raise BpfUnavailable(f"{compiled.name} is not of {SOURCE.name}, and clang is missing", INSTALL)
    made = compiled.with_suffix(".new")
    # Debian and Ubuntu keep <asm/types.h> in the folder of the machine's architecture.
    headers = f"/usr/include/{platform.machine()}-linux-gnu"
    command = ["clang", *FLAGS, "-idirafter", headers, f"-fdebug-prefix-map={SOURCE.parent}=."]
    command += [f'-DSOURCE_SHA256="{source_sha256()}"', "-c", SOURCE.name, "-o", str(made.absolute())]
    _run(command)
    # The DWARF goes, the BTF that describes the maps stays.
    strip = shutil.which("llvm-strip")
    if strip:
        _run([strip, "-g", str(made.absolute())])
    made.replace(compiled)


def main() -> None:
    """Compile if need be, and say so."""
    if is_current():
        return
    try:
        build()
    except SwitchError as failure:
        sys.exit(f"switch.ppfs.build: {failure}")
    sys.stdout.write(f"compiled {OBJECT.name}\n")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=SOURCE.parent, timeout=60)
    if done.returncode:
        raise CommandFailed(command, done.stderr)


if __name__ == "__main__":
    main()
