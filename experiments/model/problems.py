"""What pydantic found wrong in data, as a place and a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from pydantic import BaseModel, ValidationError

from experiments.errors import nearest
from topologies.validation import requirement

_TYPE = re.compile(r"constrained-\w+|\w+\[.*\]")
KINDS: Mapping[int | str, frozenset[str]] = {
    "sizes": frozenset({"fixed", "exponential", "web-search", "data-mining", "empirical"})
}
"""Values of `kind` in the tables that are told apart by it."""


def first_problem(error: ValidationError, schema: type[BaseModel] | None = None) -> tuple[str, str]:
    """Return place and reason of the first problem that pydantic found.

    For a key that the schema does not have, the nearest of its keys is offered.
    """
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in _keys_alone(problem["loc"]))
    if problem["type"] == "extra_forbidden":
        known = _known_keys(schema, problem["loc"][:-1])
        return place, f"there is no such key.{nearest(str(problem['loc'][-1]), known)}".rstrip(".")
    return place, requirement(problem)


def _known_keys(schema: type[BaseModel] | None, place: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the schema has at a place."""
    models = [] if schema is None else [schema]
    for part in place:
        annotations = [each.model_fields[str(part)] for each in models if str(part) in each.model_fields]
        if annotations:
            models = [found for field in annotations for found in _models_in(field.annotation)]
    return [name for model in models for name in model.model_fields]


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models of an annotation, with those of their kinds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for kind in annotation.__subclasses__():
            yield from _models_in(kind)
    for inner in get_args(annotation):
        yield from _models_in(inner)


def what_is_wrong(error: ValidationError) -> str:
    """Return the first problem that pydantic found, as `place: reason`."""
    place, reason = first_problem(error)
    return f"{place}: {reason}" if place else reason


def _keys_alone(place: tuple[int | str, ...]) -> Iterator[int | str]:
    """Yield the keys of a place; pydantic also names the `kind` of a table, and the type that it tried."""
    before: int | str = ""
    for part in place:
        if not (before in KINDS and part in KINDS[before]) and not _TYPE.fullmatch(str(part)):
            yield part
        before = part
