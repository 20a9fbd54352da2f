"""Tables in Markdown, and the places in docs/ between two comments where benchmarks put them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def markdown_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    cells = list(head)
    yield f"| {' | '.join(cells)} |"
    yield "|---" * len(cells) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


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
