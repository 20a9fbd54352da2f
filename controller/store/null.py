"""The store of a controller that keeps nothing."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from controller.model.records import RecordChange, Records


class NullStore:
    """Discards all records."""

    def __init__(self) -> None:
        self.identity = secrets.token_hex(4)

    def load(self) -> Records:
        """Return no records."""
        return {}

    def write(self, _: Sequence[RecordChange]) -> None:
        """Discard the changes."""

    def close(self) -> None:
        """Do nothing."""
