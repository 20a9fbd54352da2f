"""What the controller asks of a store: records by kind and key, changed in batches that are whole.

The values are JSON objects, so that any key-value store can be behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Records = dict[str, dict[str, dict[str, Any]]]
"""Values by kind and key."""


@dataclass(frozen=True)
class RecordChange:
    """A record's new value; None removes it."""

    kind: str
    key: str
    value: Mapping[str, Any] | None


def changes_of(records: Records) -> tuple[RecordChange, ...]:
    """Return the changes that make these records of an empty store, ordered by dependency."""
    kinds = sorted(records, key=lambda kind: kind in _LAST)
    return tuple(
        RecordChange(kind, key, value)
        for kind in kinds
        for key, value in sorted(records[kind].items(), key=lambda item: item[1].get("number", 0))
    )


_LAST = ("flow", "lease")
"""Kinds of records that refer to others: a flow to links and hosts, a lease to a flow."""


@dataclass(frozen=True)
class Holder:
    """The leader of several replicas: its epoch (a revision of the store), lease and addresses."""

    epoch: int
    lease: int
    rest: str = ""
    grpc: str = ""


@dataclass(frozen=True)
class Update:
    """An update to the followers of a store: changed records, and the leader where that has changed."""

    changes: tuple[RecordChange, ...] = ()
    holder: Holder | None = None
    is_of_holder: bool = False


class Store(Protocol):
    """Keeps records. All methods raise `StoreError` where that fails.

    `identity` tells it from any other one, empty again or another file.
    """

    identity: str

    def load(self) -> Records:
        """Return all records."""

    def write(self, changes: Sequence[RecordChange]) -> None:
        """Apply changes in order, all or none; they survive the process from here on."""

    def close(self) -> None:
        """Release the store."""
