"""The store of a controller that keeps nothing: its records end with the process."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from controller.model.records import Change, Records


class MemoryStore:
    """Records in memory, as a file would have them."""

    def __init__(self) -> None:
        self.identity = secrets.token_hex(4)
        self._records: dict[tuple[str, str], Mapping[str, Any]] = {}

    def load(self) -> Records:
        """Return all records."""
        records: Records = {}
        for (kind, key), value in self._records.items():
            records.setdefault(kind, {})[key] = json.loads(json.dumps(value))
        return records

    def write(self, changes: Sequence[Change]) -> None:
        """Apply changes in order."""
        for change in changes:
            if change.value is None:
                self._records.pop((change.kind, change.key), None)
            else:
                self._records[change.kind, change.key] = change.value

    def close(self) -> None:
        """Nothing is left to release."""
