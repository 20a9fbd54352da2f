"""Files of the user's own that runs execute: extensions, and methods that a scenario names as `FILE.py:NAME`.

Results are data and never run, so they hold no program: they say which files were used, by digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.model.results import OwnFile

_METHOD = ".py:"


def used_files(extensions: Iterable[Path], settings: Mapping[str, Any]) -> list[OwnFile]:
    """Return the files that runs with these extensions and settings of a scenario execute."""
    methods = dict.fromkeys(name.rpartition(":")[0] for name in _methods(settings))
    return [
        *(_described("extension", path.name, path) for path in extensions),
        *(_described("method", name, Path(name)) for name in methods),
    ]


def digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _methods(settings: Any) -> Iterator[str]:
    if isinstance(settings, Mapping):
        for value in settings.values():
            yield from _methods(value)
    elif isinstance(settings, str) and _METHOD in settings:
        yield settings


def _described(kind: Any, name: str, path: Path) -> OwnFile:
    return OwnFile(kind=kind, name=name, path=str(path.absolute()), sha256=digest(path))
