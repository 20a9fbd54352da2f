"""The tables of the butterfly are those of the results document that is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import readme
from benchmarks.pages import DOCS
from experiments.model.results_files import read_results


def test_the_tables_are_the_documents() -> None:
    for page, lines in readme.tables(read_results(readme.KEPT), read_results(readme.QUIC)).items():
        assert "\n".join(lines) in (DOCS / page).read_text(), "renew it: make readme"


@pytest.mark.parametrize("path", [readme.KEPT, readme.QUIC], ids=lambda path: path.stem)
def test_the_documents_are_valid_and_whole(path: Path) -> None:
    results = read_results(path)
    assert results.environment.valid
    assert all(run.valid for run in results.runs)
    assert {(run.case, run.seed) for run in results.runs} == {
        (case, seed) for case in "12" for seed in (1, 2, 3)
    }
    for run in results.runs:
        for flow in run.flows:
            assert (flow.bytes_wrong, flow.bytes_read) == (0, flow.bytes_written)
