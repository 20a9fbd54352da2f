"""The kernel that is shipped with the project: unpacked once, checked by its hash."""

from __future__ import annotations

import hashlib
import lzma
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import MissingRequirement
from experiments.installation import ROOT
from topologies import toml

FOLDER = Path(__file__).with_name("kernel")
COMPRESSED = FOLDER / "linux.xz"
ADDED = ROOT / "switch/tcp"
"""What is compiled into it beside the source package."""
OVERRIDE = "MSTCP_LAB_KERNEL"
"""Names a kernel to use instead of the shipped one, as `make kernel` does for its comparison."""


@dataclass(frozen=True)
class KernelRecord:
    """What is recorded of the shipped kernel (kernel/kernel.toml); hashes are SHA-256 in hexadecimal.

    `patches` and `added` are names of files, with spaces between them.
    """

    source_package: str
    source_version: str
    source_suite: str
    build_time: str
    release: str
    architecture: str
    compressed_sha256: str
    kernel_sha256: str
    patches: str
    added: str
    sources_sha256: str


def record() -> KernelRecord:
    """Return the record of the shipped kernel."""
    return KernelRecord(**toml.loads((FOLDER / "kernel.toml").read_text()))


def sources() -> list[Path]:
    """Return the files of the project that the shipped kernel was built from, in the order of its hash."""
    shipped = record()
    patches = [FOLDER / name for name in ("defconfig", *shipped.patches.split())]
    return [*patches, *(ADDED / name for name in shipped.added.split())]


def kernel() -> Path:
    """Return the kernel, unpacked into the user's cache if need be (MissingRequirement: it cannot be run)."""
    named = os.environ.get(OVERRIDE)
    if named:
        if not os.access(named, os.X_OK):
            raise MissingRequirement(f"{OVERRIDE} names {named}, which is no program.", "Unset it.")
        return Path(named)
    shipped = record()
    if platform.system() != "Linux" or platform.machine() != shipped.architecture:
        what = f"The kernel of the virtual engine runs on Linux on {shipped.architecture} alone."
        raise MissingRequirement(what, "Use --engine live or --engine sim here.")
    path = cache_folder() / f"linux-{shipped.kernel_sha256[:16]}"
    if not path.exists():
        _unpack(path, shipped)
    return path


def cache_folder() -> Path:
    """Return the folder of the user's cache that is ours."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mstcp-lab"


def _unpack(path: Path, shipped: KernelRecord) -> None:
    try:
        data = lzma.decompress(COMPRESSED.read_bytes())
        if hashlib.sha256(data).hexdigest() != shipped.kernel_sha256:
            raise MissingRequirement(
                f"{COMPRESSED} is not the kernel that kernel.toml describes.",
                "Restore both from the repository.",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        # Several may unpack at once: each to a file of its own, and the last one stays.
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(partial).chmod(0o755)
            Path(partial).replace(path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
    except (OSError, lzma.LZMAError) as error:
        remedy = "Make room there, or name another folder with XDG_CACHE_HOME."
        raise MissingRequirement(f"The kernel cannot be unpacked to {path}: {error}.", remedy) from None
