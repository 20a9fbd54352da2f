"""Methods of one's own: `MODULE:NAME` or `FILE.py:NAME` as objects (docs/own-methods.md)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def is_own(name: str) -> bool:
    """Return whether a name stands for a method of one's own."""
    place, _, what = name.rpartition(":")
    return bool(place and what)


def absolute(name: str) -> str:
    """Return a name whose file is found from any folder."""
    place, _, what = name.rpartition(":")
    return f"{Path(place).absolute()}:{what}" if place.endswith(".py") else name


def absolute_names(value: Any) -> Any:
    """Return a part of a description in which files of methods are found from any folder."""
    if isinstance(value, dict):
        return {key: absolute_names(part) for key, part in value.items()}
    if isinstance(value, list):
        return [absolute_names(part) for part in value]
    if isinstance(value, str) and ".py:" in value:
        return absolute(value)
    return value


def load(kind: str, name: str) -> Any:
    """Return a new object of a method; the simulator calls this for each connection.

    `kind` is what it is to be, as in a sentence; `name` is `MODULE:NAME` or `FILE.py:NAME`.

    Raises:
        ImportError: the file or module cannot be loaded.
        TypeError: there is no such class in it, or it does not take no arguments.
    """
    place, _, what = name.rpartition(":")
    if place.endswith(".py") and not Path(place).is_file():
        raise ImportError(f"there is no file {place}")
    try:
        module = _of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:
        raise ImportError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from error
    made = getattr(module, what, None)
    if not callable(made):
        raise TypeError(f"{place} has no class {what} that could be a {kind}")
    return made()


def _of_file(path: Path) -> ModuleType:
    name = f"mstcp_own_methods_{path.absolute()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "it ends with .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
