"""Reads the configuration file; what is wrong is named with its file, line and key."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from controller.configuration.schema import Configuration
from controller.errors import ConfigError
from topologies.validation import join_place, requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_BYTES = 1 << 20


def read(path: Path) -> str:
    """Return the text of a configuration file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ConfigError(str(path), f"has more than {_MAX_BYTES} bytes; this is no configuration.")
        return content.decode()
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), f"is not UTF-8 text: byte {error.start} is none.") from None


def configure(text: str, file: str, options: Mapping[str, Any] | None = None) -> Configuration:
    """Return the configuration that a text says; options of the command line come before what it says.

    Raises:
        ConfigError: naming file, line and key.
    """
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(file, f"is not TOML: {error}.") from None
    except RecursionError:
        raise ConfigError(file, "is nested too deeply.") from None
    except ValueError as error:  # a number of thousands of digits
        raise ConfigError(file, f"has a value that cannot be read: {error}.") from None
    try:
        return Configuration.model_validate(merge(settings, options or {}))
    except ValidationError as invalid:
        first, *others = invalid.errors(include_url=False)
        place = _place(text, file, first["loc"])
        more = f" ({len(others)} more are wrong.)" if others else ""
        raise ConfigError(place, _reason(first) + more) from None


def merge(settings: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with options in their place."""
    merged = dict(settings)
    for name, value in options.items():
        below = merged.get(name)
        if isinstance(value, Mapping):
            merged[name] = merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged


def _reason(problem: Any) -> str:
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return "there is no such setting."
    return requirement(problem).rstrip(".") + "."


def _place(text: str, file: str, location: Sequence[str | int]) -> str:
    key, line = join_place("", location), _line_of(text, location)
    return f"{file}, line {line}, {key}" if line else f"{file}, {key}" if key else file


def _line_of(text: str, location: Sequence[str | int]) -> int | None:
    """Return the line where a setting, or else the table that it should be in, stands.

    The parser tells no places. Tables and keys are looked for one line each, as nearly everybody writes them.
    """
    names = [str(part) for part in location if isinstance(part, str)]
    index = next((part for part in location if isinstance(part, int)), 0)
    table: list[str] = []
    seen: dict[str, int] = {}
    nearest: tuple[int, int] | None = None  # parts that agree, line
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?", line)
        if header:
            table = _parts(header[1])
            if line.lstrip().startswith("[["):
                seen[header[1]] = seen.get(header[1], -1) + 1
                if table == names[: len(table)] and seen[header[1]] != index:
                    table = ["\0"]
            path = table
        else:
            entry = re.match(
                r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""", line
            )
            if not entry:
                continue
            path = table + _parts(entry[1])
        agree = len(path) if path == names[: len(path)] else 0
        if agree and (nearest is None or agree > nearest[0]):
            nearest = agree, number
    return nearest[1] if nearest else None


def _parts(key: str) -> list[str]:
    return [part.strip().strip("\"'") for part in key.split(".")]
