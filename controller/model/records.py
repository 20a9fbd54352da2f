"""What the controller asks of a store: records by kind and key, changed in batches that are whole.

The values are JSON objects, so that any key-value store can be behind it (SQLite here; etcd's keys would be
`/mstcp/<kind>/<key>`, a batch one transaction).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Change", "Records", "Store"]

Records = dict[str, dict[str, dict[str, Any]]]
"""Values by kind and key."""


@dataclass(frozen=True)
class Change:
    """A record's new value; None removes it."""

    kind: str
    key: str
    value: Mapping[str, Any] | None


class Store(Protocol):
    """Keeps records. All methods raise `StoreError` where that fails."""

    def load(self) -> Records:
        """Return all records."""

    def write(self, changes: Sequence[Change]) -> None:
        """Apply changes in order, all or none; they survive the process from here on."""

    def close(self) -> None:
        """Release the store."""
