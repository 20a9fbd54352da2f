"""Reads results documents that a user names: a folder of results, or the file itself."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from experiments.errors import ScenarioError
from experiments.model.problems import what_is_wrong
from experiments.model.results import Results

RESULTS_FILE = "results.json"


def document_name(path: Path) -> str:
    """Return what sentences call a document: its folder, unless the file has another name."""
    return str(path.parent if path.name == RESULTS_FILE and path.parent.name else path)


def read_results(path: Path) -> Results:
    """Read a results folder, or the document in it.

    Raises:
        ScenarioError: there is none, or it is not a results document; with the place of what is wrong.
    """
    file = path / RESULTS_FILE if path.is_dir() else path
    try:
        return Results.read(file)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}; give a results folder or its {RESULTS_FILE}"
        raise ScenarioError(str(file), "", reason) from None
    except UnicodeDecodeError:
        raise ScenarioError(str(file), "", "is not a results document: it is not text") from None
    except ValidationError as error:
        raise ScenarioError(str(file), "", f"is not a results document: {what_is_wrong(error)}") from None
