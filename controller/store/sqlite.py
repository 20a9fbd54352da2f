"""The store in one SQLite file."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from controller.errors import StoreError
from controller.model.records import RecordChange, Records

_MIGRATIONS = (
    "CREATE TABLE records (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
    "PRIMARY KEY (kind, key)) WITHOUT ROWID",
)
"""Each takes the schema from one version (its index) to the next; `PRAGMA user_version` says which it has."""


class SqliteStore:
    """Records in a SQLite file that is made if it is missing, and locked while it is open.

    The journal is a write-ahead log that is not synchronised on every commit: what was written survives the
    process, however it ends; a power failure may take the last moments.

    Raises:
        StoreError: the file cannot be used, another controller uses it, or a newer version made it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=1.0
            )
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._migrate()
            (number,) = self._connection.execute("PRAGMA application_id").fetchone()
            self.identity = f"{number:08x}"
        except (OSError, sqlite3.Error) as error:
            raise self._error(error) from None

    def load(self) -> Records:
        """Return all records."""
        records: Records = {}
        try:
            for kind, key, value in self._connection.execute("SELECT kind, key, value FROM records"):
                records.setdefault(kind, {})[key] = json.loads(value)
        except (sqlite3.Error, json.JSONDecodeError) as error:
            raise self._error(error) from None
        return records

    def write(self, changes: Sequence[RecordChange]) -> None:
        """Apply changes in order, all or none."""
        rows = [(c.kind, c.key, None if c.value is None else json.dumps(c.value)) for c in changes]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for kind, key, value in rows:
                if value is None:
                    self._connection.execute("DELETE FROM records WHERE kind = ? AND key = ?", (kind, key))
                else:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO records VALUES (?, ?, ?)", (kind, key, value)
                    )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise self._error(error) from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _migrate(self) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > len(_MIGRATIONS):
            raise sqlite3.DatabaseError(
                f"it has version {version} of the schema and this controller knows {len(_MIGRATIONS)}; "
                "use the controller that wrote it, or another file"
            )
        self._connection.execute("BEGIN IMMEDIATE")
        if version == 0:
            self._connection.execute(f"PRAGMA application_id = {secrets.randbits(31)}")
        for step in _MIGRATIONS[version:]:
            self._connection.execute(step)
        self._connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")
        self._connection.execute("COMMIT")

    def _error(self, error: Exception) -> StoreError:
        reason = str(error)
        if "locked" in reason:
            reason = "another controller uses it; end that one or name another file"
        return StoreError(str(self._path), reason)
