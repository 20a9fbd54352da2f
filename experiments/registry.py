"""Things of one kind by name: those of this package, of installed distributions, and of files of one's own.

A module that adds something calls the `register` of its kind when it is imported:

    experiments.protocols.register(Mine())

Such a module is found in three ways (docs/extensions.md): this package imports its own; an installed
distribution names it as an entry point of the group `mstcp_lab.extensions`; a user names its file, or a
folder of such files, with `mstcp-lab --extend PATH`. Worker processes learn of the last by the environment.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from experiments.errors import ExtensionError, UnknownName, nearest

GROUP = "mstcp_lab.extensions"
VARIABLE = "MSTCP_LAB_EXTENSIONS"
"""Files of extensions, absolute and separated as in PATH, for this process and those that it starts."""


class Named(Protocol):
    """What can be registered."""

    @property
    def name(self) -> str:
        """Unique among the things of its kind."""


Thing = TypeVar("Thing", bound=Named)
Model = TypeVar("Model", bound=BaseModel)


class Registry(Mapping[str, Thing]):
    """The things of one kind by name, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, Thing] = {}

    def register(self, thing: Thing) -> Thing:
        """Add a thing and return it; ExtensionError if its name is taken."""
        if thing.name in self._things:
            raise ExtensionError(thing.name, f"there is a {self.kind} of this name already")
        self._things[thing.name] = thing
        return thing

    def find(self, name: str) -> Thing:
        """Return a thing; UnknownName lists those that are there."""
        if name not in self:
            raise UnknownName(self.kind, name, self)
        return self[name]

    def __getitem__(self, name: str) -> Thing:
        _load_extensions()
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        _load_extensions()
        return iter(self._things)

    def __len__(self) -> int:
        _load_extensions()
        return len(self._things)


@dataclass(frozen=True)
class ModelEntry(Generic[Model]):
    """A model by the value of its `kind`."""

    name: str
    model: type[Model]


class Kinds(Registry[ModelEntry[Model]], Generic[Model]):
    """Models of tables that are told apart by their `kind`."""

    def register_kind(self, model: type[Any]) -> type[Any]:
        """Add a model, by the default of its `kind`; decorates its class."""
        self.register(ModelEntry(model.model_fields["kind"].default, model))
        return model

    def parse(self, value: Any) -> Any:
        """Return the model that a table stands for; one that is there already as it is."""
        if not isinstance(value, dict):
            return value
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in self:
            hint = nearest(str(kind), self) or f" Known are {', '.join(self)}"
            raise ValueError(f"there is no {self.kind} of kind {kind!r}.{hint}")
        return self[kind].model.model_validate(value)


_loaded: set[Any] = set()


def extend(paths: Iterable[str | Path]) -> None:
    """Load extensions from files and folders, in this process and in those that it starts from now on.

    All Python files of a folder are extensions, but those named `_…`.

    Raises:
        ExtensionError: a file is not there or cannot be loaded.
    """
    known = extension_files()
    files = dict.fromkeys([*known, *(file for path in paths for file in _files(Path(path)))])
    os.environ[VARIABLE] = os.pathsep.join(map(str, files))
    _load_extensions()


def extension_files() -> list[Path]:
    """Return the files of extensions that this process was told of."""
    return [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def _files(path: Path) -> list[Path]:
    path = path.absolute()
    if path.is_dir():
        return [file for file in sorted(path.glob("*.py")) if not file.name.startswith("_")]
    if not path.is_file():
        raise ExtensionError(str(path), "there is no such file or folder")
    return [path]


def _load_extensions() -> None:
    """Load what was not loaded yet; lookups during that see what is registered so far."""
    if GROUP not in _loaded:
        from importlib.metadata import entry_points  # half of what a simulator's process would import

        _loaded.add(GROUP)
        for point in entry_points(group=GROUP):
            _guarded(f"{point.name} = {point.value}", point.load)
    for file in extension_files():
        if file not in _loaded:
            _loaded.add(file)
            _guarded(str(file), lambda file=file: _import_file(file))


def _guarded(name: str, load: Any) -> None:
    try:
        load()
    except ExtensionError:
        raise
    except Exception as error:
        raise ExtensionError(name, f"it cannot be loaded: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> None:
    name = f"mstcp_lab_extension_{path.stem}_{len(_loaded)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ExtensionError(str(path), "it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # which dataclasses and pydantic look into
    spec.loader.exec_module(module)
