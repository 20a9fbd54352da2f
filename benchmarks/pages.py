"""What benchmarks show: their help, results on the terminal, and the tables of docs/ between two comments."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"


def command_line(description: str | None, *, with_json: bool = False) -> argparse.ArgumentParser:
    """Return the parser of the module that runs; its help is the module's text as it stands."""
    spec = sys.modules["__main__"].__spec__
    name = spec.name.removesuffix(".__main__") if spec is not None else "benchmark"
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(f"python -m {name}", description=description, formatter_class=raw)
    if with_json:
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def renew(page: str, name: str, lines: Iterable[str]) -> None:
    """Put `lines` between `<!-- NAME: begin -->` and `<!-- NAME: end -->` in docs/`page`.

    Raises:
        ValueError: the page has no such markers.
    """
    path = DOCS / page
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, marker, rest = path.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (marker and closed):
        raise ValueError(
            f"docs/{page} has no table {name!r}: put {begin.strip()} and {end} on lines of their own"
        )
    path.write_text(before + begin + "".join(f"{line}\n" for line in lines) + end + after, encoding="utf-8")


def show(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result: as JSON and nothing else, or a line for each figure."""
    if as_json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        shown = "-" if value is None else f"{value:.6g}" if isinstance(value, float) else value
        print(f"{name:32} {shown}")
