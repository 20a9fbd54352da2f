"""Turns pydantic's complaints into a `TopologyError` that names the place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from topologies.errors import InvalidTopology

Model = TypeVar("Model", bound=BaseModel)


def validate(
    model: type[Model],
    data: object,
    *,
    file: str | None = None,
    prefix: str = "",
    error: type[InvalidTopology] = InvalidTopology,
) -> Model:
    """Return `data` as a model.

    Args:
        model: the schema.
        data: what a file or an override holds.
        file: the file, for the error.
        prefix: where `data` stands in it, as `links.S0-S4`.
        error: the class of error to raise.

    Raises:
        InvalidTopology: the first thing wrong, with its place, and how many more there are.
    """
    try:
        return model.model_validate(data)
    except ValidationError as invalid:
        first, *others = invalid.errors(include_url=False)
        more = f" (and {len(others)} more)" if others else ""
        place = join_place(prefix, first["loc"])
        raise error(place, _reason(model, first) + more, file) from None


def join_place(prefix: str, location: Sequence[str | int]) -> str:
    """Return a path of keys as `links[3].rate_bps`."""
    place = prefix
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
        else:
            place += f".{part}" if place else part
    return place


def _reason(model: type[BaseModel], problem: Any) -> str:
    if problem["type"] == "extra_forbidden":
        here = f"; there are {', '.join(model.model_fields)}" if len(problem["loc"]) == 1 else ""
        return f"unknown key{here}"
    if problem["type"] == "missing":
        return "this key is missing"
    message = problem["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    value = repr(problem["input"])
    return f"{message}, not {value}" if len(value) <= 60 else message
