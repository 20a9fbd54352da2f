"""README's table is that of the results document beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from experiments.model.results import Results

ROOT = Path(__file__).parents[2]


def test_the_table_is_the_documents() -> None:
    done = subprocess.run([sys.executable, "scripts/readme-table", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "renew it: make readme"


def test_the_document_is_valid_and_whole() -> None:
    results = Results.read(ROOT / "docs" / "results" / "butterfly.json")
    assert results.environment.valid
    assert all(run.valid for run in results.runs)
    assert {(run.case, run.seed) for run in results.runs} == {
        (case, seed) for case in "12" for seed in (1, 2, 3)
    }
    for run in results.runs:
        for flow in run.flows:
            assert (flow.bytes_wrong, flow.bytes_read) == (0, flow.bytes_written)
