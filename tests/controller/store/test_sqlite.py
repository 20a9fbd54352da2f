import sqlite3
from pathlib import Path

import pytest

from controller.errors import StoreError
from controller.model.records import RecordChange
from controller.store.sqlite import SqliteStore


def test_what_was_written_is_there_after_the_process_died(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "new" / "state.sqlite")
    store.write([RecordChange("flow", "a", {"rate": 1.5}), RecordChange("flow", "b", {"path": ["x"]})])
    store.write([RecordChange("flow", "a", None), RecordChange("host", "a", {})])
    store._connection.close()  # without a word, as a crash would
    again = SqliteStore(tmp_path / "new" / "state.sqlite")
    assert again.load() == {"flow": {"b": {"path": ["x"]}}, "host": {"a": {}}}


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    with pytest.raises(TypeError):
        store.write([RecordChange("flow", "a", {}), RecordChange("flow", "b", {"value": object()})])
    assert store.load() == {}
    store.write([RecordChange("flow", "c", {})])
    assert store.load() == {"flow": {"c": {}}}


def test_a_store_in_use_is_a_sentence(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "state.sqlite")
    first.write([RecordChange("flow", "a", {})])
    with pytest.raises(StoreError, match="another controller uses it"):
        SqliteStore(tmp_path / "state.sqlite")


def test_what_is_no_database_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_text("no database, but text that is long enough\n" * 20)
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteStore(tmp_path / "state.sqlite")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "state.sqlite").close()
    with sqlite3.connect(tmp_path / "state.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="version 99"):
        SqliteStore(tmp_path / "state.sqlite")
