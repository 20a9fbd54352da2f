"""Fields of dataclasses with what clients are told of them."""

from __future__ import annotations

from dataclasses import MISSING, field
from typing import Any


def api_field(description: str, default: Any = MISSING, **schema: Any) -> Any:
    """Return a field that is api_field in the OpenAPI document and checked by it.

    Args:
        description: A text; empty where the name says it.
        default: Of the field; left out: it must be given.
        schema: Examples, and what a value must be, as pydantic's `Field` takes them.
    """
    text = {"description": description} if description else {}
    return field(default=default, metadata=text | schema)
