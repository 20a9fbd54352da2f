"""Renews what docs/studies.md and the README say of results, from build/studies.

python -m benchmarks.tables.studies SEEDS
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.pages import renew
from experiments.studies.document import CheckedClaim, Judgement, StudyDocument
from experiments.studies.figures import number
from experiments.studies.text import words

STUDIES = Path(__file__).resolve().parents[2] / "build" / "studies"
METHODS = ("nopr", "dsack", "eifel", "door", "frto")
PUBLISHED = (
    ("two 802.11g links, 10 m", "alheid-2016-wd", "III scenario 1", "co", "1.3, 12.5, 1.3, 41.9, 2.8"),
    ("the same uncoupled", "alheid-2016-wd", "III scenario 1", "un", "1.8, 22.0, 6.9, 41.9, 8.2"),
    ("two 802.11b links", "alheid-2016-wd", "III scenario 2", "co", "3.7, 32.8, 5.5, 46.6, 18.8"),
    ("54 beside 2 Mbit/s", "alheid-2016-wd", "III scenario 3", "co", "3.5, 3.2, 12.7, 55.4, 31.7"),
    ("wire beside Wi-Fi, uncoupled", "alheid-2014", "II", "un ooo_pct", "4.1, 32.6, 20.2, 46.5, 29.5"),
    ("buffer there, KB", "alheid-2014", "II", "un buffer_kb", "5.6 to 162, 29, 113, 351, 46"),
    ("buffer, two 802.11g links, KB", "alheid-2016-wd", "IV scenario 1", "co", "22.4, 33.6, 14.0, 204, 46.2"),
    (
        "buffer, 54 beside 2 Mbit/s, KB",
        "alheid-2016-wd",
        "IV scenario 3",
        "co",
        "11.2, 26.6, 68.6, 115, 39.2",
    ),
    (
        "use of the wire with fully coupled windows, %",
        "alheid-2014",
        "III",
        "fc wired_pct",
        "3 or 97, 71 to 91 or 15, 48 to 63 or 8 or 96, 73 to 96 or 5, 31 to 79",
    ),
)
"""What the published code of the papers' model gives, in the order of METHODS: label, cells, figures."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the tables; returns the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    paths = sorted(STUDIES.glob("*/study.json"))
    if len(arguments) != 1 or not paths:
        print(
            "benchmarks.tables.studies: give the number of seeds, after `make studies` has made the runs",
            file=sys.stderr,
        )
        return 2
    documents = [StudyDocument.model_validate_json(path.read_text(encoding="utf-8")) for path in paths]
    last = "No tolerance is made beyond the last digit that a paper prints."
    renew("../README.md", "studies", [f"{in_all(documents, arguments[0])}.", last])
    renew("studies.md", "studies", overview(documents, arguments[0]))
    renew("studies.md", "studies-sentences", sentences(documents))
    by_name = {document.study: document for document in documents}
    if "kato-cc" in by_name:
        renew("studies.md", "studies-kato-cc", beside_one_tcp(by_name["kato-cc"]))
    if {name for _, name, *_ in PUBLISHED} <= set(by_name):
        renew("studies.md", "studies-published", beside_published_code(by_name))
    return 0


def in_all(documents: Sequence[StudyDocument], seeds: str) -> str:
    """Return the sum of all studies as a sentence without its end."""
    claims = [claim for document in documents for claim in document.claims]
    status = Counter(claim.status for claim in claims)
    return (
        f"Of {len(claims)} sentences of the papers, checked with {seeds} seeds, {status['reproduced']} are "
        f"reproduced, {status['not_reproduced']} are not, {status['undecided']} cannot be told, and in "
        f"{status['contradictory']} the paper contradicts itself"
    )


def overview(documents: Sequence[StudyDocument], seeds: str) -> Iterator[str]:
    """Return the sums, and a row for each study."""
    columns = [document.columns for document in documents]
    alike, contrary = (sum(getattr(one, key) for one in columns) for key in ("pairs_alike", "pairs_contrary"))
    consistent, of = (sum(getattr(one, key) for one in columns) for key in ("consistent", "of"))
    yield f"{in_all(documents, seeds)}. Of {of} columns {consistent} are consistent, and of the"
    yield f"{alike + contrary} pairs of rows that the seeds tell apart {alike} are in the paper's order."
    heads = [
        f"study, {seeds} seeds",
        "reproduced, not, undecided, contradictory",
        "reproduced also by the measure beside",
        "reproduced also without the assumption",
        "columns ranked alike",
        "consistent",
        "uncontradicted",
        "pairs alike, contrary, open",
    ]
    yield from ("", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
    yield from map(row, documents)


def row(document: StudyDocument) -> str:
    """Return a study's row."""
    status = Counter(claim.status for claim in document.claims)
    reproduced = [claim for claim in document.claims if claim.status == "reproduced"]
    columns = document.columns
    cells = [
        f"`{document.study}`",
        ", ".join(str(status[one]) for one in ("reproduced", "not_reproduced", "undecided", "contradictory")),
        _share([claim.beside for claim in reproduced]),
        _share([claim.without for claim in reproduced]),
        *(
            f"{count} of {columns.of}"
            for count in (columns.ranked_alike, columns.consistent, columns.uncontradicted)
        ),
        f"{columns.pairs_alike}, {columns.pairs_contrary}, {columns.pairs_open}",
    ]
    return f"| {' | '.join(cells)} |"


def _share(others: Sequence[Judgement | None]) -> str:
    checked = [other.status == "reproduced" for other in others if other is not None]
    return f"{sum(checked)} of {len(checked)}" if checked else ""


def sentences(documents: Sequence[StudyDocument]) -> Iterator[str]:
    """Return a table of each study's sentences."""
    for document in documents:
        yield from (
            f"**{document.study}**",
            "",
            "| result | by | sentence | otherwise |",
            "|---|---|---|---|",
        )
        yield from (
            f"| {words(claim.status)} | `{claim.by}` | {claim.claim} | {otherwise(claim)} |"
            for claim in document.claims
        )
        yield ""


def otherwise(claim: CheckedClaim) -> str:
    """Return what comes of a sentence by another measure, or without the assumption on which it depends."""
    beside = [f"by `{claim.beside.by}` {words(claim.beside.status)}"] if claim.beside else []
    without = [f"depends on an assumption, without it {words(claim.without.status)}"] if claim.without else []
    return "; ".join(beside + without)


def beside_one_tcp(document: StudyDocument) -> Iterator[str]:
    """Return Kato's throughputs with and without the kept threshold."""
    ours = {(cell.table, cell.row, cell.column): cell.ours for cell in document.cells}
    papers = {(cell.table, cell.row, cell.column): cell.paper or 0.0 for cell in document.cells}
    yield "| MPTCP with LIA beside one TCP, Mbit/s | ours | with an infinite threshold | paper |"
    yield "|---|---|---|---|"
    for table, name in (("Ethernet", "Ethernet"), ("Ethernet and WLAN", "WLAN")):
        for row, title in (("reno", "Reno"), ("cubic", "CUBIC")):
            kept = [(table, row, f"{flow} Mbit/s") for flow in ("MPTCP", "TCP")]
            infinite = [
                ("With an infinite slow-start threshold", row, f"{name}: {flow} Mbit/s")
                for flow in ("MPTCP", "TCP")
            ]
            shares = [
                f"{of[mptcp]:.2f} of {of[mptcp] + of[tcp]:.1f}"
                for of, (mptcp, tcp) in ((ours, kept), (ours, infinite), (papers, kept))
            ]
            yield f"| {table}, beside {title} | {' | '.join(shares)} |"


def beside_published_code(documents: dict[str, StudyDocument]) -> Iterator[str]:
    """Return the table of the paper, the published code and ours."""
    yield from ("| | paper | published code | ours |", "|---|---|---|---|")
    for label, study, table, column, published in PUBLISHED:
        cells = {
            cell.row: cell
            for cell in documents[study].cells
            if (cell.table, cell.column) == (table, column) and cell.paper is not None
        }
        paper = ", ".join(number(cells[method].paper or 0.0) for method in METHODS)
        ours = ", ".join(f"{cells[method].ours:.3g}" for method in METHODS)
        yield f"| {label} | {paper} | {published} | {ours} |"


if __name__ == "__main__":
    sys.exit(main())
