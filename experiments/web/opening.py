"""Opens what `mstcp-lab browse` is given: results documents."""

from __future__ import annotations

from pathlib import Path

from experiments.reading import read_results
from experiments.web.documents import Document, FinishedResults


def open_results(path: Path) -> Document:
    """Open a folder with results, or a document.

    Raises:
        ScenarioError: there is nothing that a page could show.
    """
    return FinishedResults(read_results(path), str(path))
