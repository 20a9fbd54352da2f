"""Settings of a document by their dotted names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested tables hold, with names as `tcp.sack`; an empty table is a value."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
