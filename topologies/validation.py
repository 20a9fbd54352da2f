"""Turns pydantic's errors into sentences, and into a `TopologyError` that names the place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    return requirement(problem)


_PHRASES = (
    ("Value error, ", ""),
    ("Field required", "must be given"),
    ("Input should be", "must be"),
    ("a valid boolean, unable to interpret input", "true or false"),
    ("a valid boolean", "true or false"),
    ("a valid integer, unable to parse string as an integer", "a whole number"),
    ("a valid integer, got a number with a fractional part", "a whole number"),
    ("a valid integer", "a whole number"),
    ("a valid number, unable to parse string as a number", "a number"),
    ("a valid number", "a number"),
    ("a valid string", "a text"),
    ("a valid dictionary or object to extract fields from", "an object with keys"),
    ("greater than or equal to", "at least"),
    ("less than or equal to", "at most"),
)
"""pydantic's words, and those of all our errors about values."""
_MAX_VALUE = 60


def requirement(problem: Mapping[str, Any]) -> str:
    """Return what a value must be and what it is, of one of pydantic's errors.

    For example: `must be greater than 0, not -1`.
    """
    is_object = problem.get("type") == "dataclass_type"  # whose name is ours
    message = "must be an object with keys" if is_object else str(problem["msg"])
    for theirs, ours in _PHRASES:
        message = message.replace(theirs, ours)
    value = problem.get("input")
    # What comes with a missing key is the object around it.
    is_shown = problem.get("type") != "missing" and isinstance(value, str | int | float)
    if not (is_shown and message.startswith("must be ")):
        return message
    written = repr(value)
    return f"{message}, not {written}" if len(written) <= _MAX_VALUE else message
