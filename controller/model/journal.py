"""Undoes the changes of an event that fails: an event is applied whole or not at all.

The core's state is made of `Journaled` objects, `JournaledDict` and `JournaledSet`. While a `Journal` is
open, each change of one of them leaves behind how to undo it; the core opens one for each event. Immutable
values (tuples, frozen dataclasses) are replaced as wholes. A key that is restored comes last in its dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Generic, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")
_J = TypeVar("_J", bound="Journaled")

_ABSENT = object()
_CALL = object()

_open: ContextVar[list[Any] | None] = ContextVar("journal", default=None)
"""How to undo what was changed, three items each: a dict (an object's attributes are one), a key and what it
had; or `_CALL`, a function and its arguments. A flat list costs half of one with a tuple for each change."""


class Journal:
    """A context: if its block raises, everything that it changed is as before; then the error goes on."""

    def __enter__(self) -> Journal:
        assert _open.get() is None, "one event at a time"
        self._undo: list[Any] = []
        self._token = _open.set(self._undo)
        return self

    def __len__(self) -> int:
        """Return how many changes it would undo."""
        return len(self._undo) // 3

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open.reset(self._token)
        undo = self._undo if kind is not None else []
        for place in range(len(undo) - 3, -1, -3):
            changed, key, value = undo[place : place + 3]
            if changed is _CALL:
                key(*value)
            elif value is _ABSENT:
                dict.pop(changed, key, None)
            else:
                dict.__setitem__(changed, key, value)


def undo_by(call: Callable[..., object], *arguments: object) -> None:
    """Note the call that undoes a change which was just made; outside of an event nothing."""
    undo = _open.get()
    if undo is not None:
        undo += (_CALL, call, arguments)


class Journaled:
    """Its attributes are restored when the event that set them fails."""

    def __setattr__(self, name: str, value: object) -> None:
        attributes = self.__dict__
        if name in attributes:  # else the object is new, and goes with the event
            undo = _open.get()
            if undo is not None:
                undo += (attributes, name, attributes[name])
        attributes[name] = value

    def copied(self: _J, **changes: object) -> _J:
        """Return a copy with some attributes changed; `dataclasses.replace` takes ten times as long."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        return copy


class JournaledDict(dict[_K, _V], Generic[_K, _V]):
    """A dict whose changes are undone when the event that made them fails."""

    # Called some fifty times for each flow: `dict`'s own methods, named, are twice as fast as super().

    def __setitem__(self, key: _K, value: _V) -> None:
        undo = _open.get()
        if undo is not None:
            undo += (self, key, dict.get(self, key, _ABSENT))
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: _K) -> None:
        undo = _open.get()
        if undo is not None:
            undo += (self, key, dict.get(self, key, _ABSENT))
        dict.__delitem__(self, key)

    def pop(self, key: _K, *default: Any) -> Any:
        """Remove a key and return its value."""
        undo = _open.get()
        if undo is not None and key in self:
            undo += (self, key, dict.__getitem__(self, key))
        return dict.pop(self, key, *default)

    def setdefault(self, key: _K, default: _V) -> _V:
        """Return the value of a key, which is `default` from now on if there was none."""
        if key not in self:
            self[key] = default
            return default
        return self[key]

    def set_all(self, values: dict[_K, _V]) -> None:
        """Set several keys: `update`, journaled."""
        undo = _open.get()
        if undo is not None:
            for key in values:
                undo += (self, key, dict.get(self, key, _ABSENT))
        dict.update(self, values)

    def clear(self) -> None:
        """Remove all keys."""
        undo = _open.get()
        if undo is not None and self:
            undo += (_CALL, dict.update, (self, dict(self)))
        dict.clear(self)

    def update(self, *_: Any, **__: Any) -> None:
        """Not journaled, so not offered."""
        raise NotImplementedError("use set_all")

    def popitem(self) -> tuple[_K, _V]:
        """Not journaled, so not offered."""
        raise NotImplementedError("pop a key")


class JournaledSet(set[_V], Generic[_V]):
    """A set whose changes are undone when the event that made them fails; changed one element at a time."""

    def add(self, value: _V) -> None:
        """Add an element."""
        if value not in self:
            undo_by(super().discard, value)
            super().add(value)

    def discard(self, value: object) -> None:
        """Remove an element if it is there."""
        if value in self:
            undo_by(super().add, value)
            super().discard(value)

    def add_all(self, values: Iterable[_V]) -> None:
        """Add several elements."""
        for value in values:
            self.add(value)

    def discard_all(self, values: Iterable[_V]) -> None:
        """Remove those of several elements that are there."""
        for value in list(values):
            self.discard(value)

    def remove(self, value: object) -> None:
        """Not journaled, so not offered."""
        raise NotImplementedError("discard it")
