"""The store of a controller that keeps nothing."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from controller.model.records import RecordChange, Records


class NullStore:
    """Takes records and forgets them."""

    def __init__(self) -> None:
        self.identity = secrets.token_hex(4)

    def load(self) -> Records:
        """Return that there are none."""
        return {}

    def write(self, _: Sequence[RecordChange]) -> None:
        """Forget them."""

    def close(self) -> None:
        """Nothing is left to release."""
