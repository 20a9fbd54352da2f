"""Renews the table of docs/studies.md from build/studies: python -m benchmarks.tables.studies SEEDS."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages import renew

STUDIES = Path(__file__).resolve().parents[2] / "build" / "studies"
RANKS = {
    "ranked_alike": "columns ranked alike",
    "consistent": "consistent",
    "uncontradicted": "uncontradicted",
}
COLUMNS = " | ".join(["sentences reproduced", "contradictory in the paper", *RANKS.values()])


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table; returns the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    documents = sorted(STUDIES.glob("*/study.json"))
    if len(arguments) != 1 or not documents:
        print(
            "benchmarks.tables.studies: give the number of seeds, after `make studies` has made the runs",
            file=sys.stderr,
        )
        return 2
    head = f"| study, {arguments[0]} seeds | {COLUMNS} | pairs alike, contrary, open |"
    rows = (row(json.loads(path.read_text(encoding="utf-8"))) for path in documents)
    renew("studies.md", "studies", [head, "|---|---|---|---|---|---|---|", *rows])
    return 0


def row(document: dict[str, Any]) -> str:
    """Return a study's row of the table."""
    status = [claim["status"] for claim in document["claims"]]
    columns = document["columns"]
    ranks = " | ".join(f"{columns[key]} of {columns['of']}" for key in RANKS)
    pairs = ", ".join(str(columns[key]) for key in ("pairs_alike", "pairs_contrary", "pairs_open"))
    sentences = f"{status.count('reproduced')} of {len(status)} | {status.count('contradictory')}"
    return f"| `{document['study']}` | {sentences} | {ranks} | {pairs} |"


if __name__ == "__main__":
    sys.exit(main())
