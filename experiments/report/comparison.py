"""Several results documents against the first of them: what was set otherwise, and what came out otherwise.

Nothing here knows its form: the terminal, the page and the JSON document show the same `Comparison`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.analysis.metrics import MetricSpec, metrics_of
from experiments.analysis.samples import leaves
from experiments.analysis.statistics import Difference, Estimate, estimate_of_seeds, welch_of_seeds
from experiments.errors import UnknownName
from experiments.model.results import Results
from experiments.report.notes import validity_sentences
from experiments.report.summary import FlowSummary, summarise, unique

NOT_SET = "\N{EN DASH}"
DEFAULT = "default"
IGNORED_KEYS = {"format", "name", "description", "network", "variant", "duration_s", "protocols"}
"""Keys of a scenario that a document has elsewhere, or that say nothing of how it was run."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MAX_DOCUMENTS = len(LETTERS)
Key = tuple[str, str, str]


@dataclass(eq=False)
class NotComparable(Exception):
    """Two documents have nothing that could be compared; `first` and `other` are their names."""

    first: str
    other: str
    reason: str

    def __str__(self) -> str:
        return f"{self.first} and {self.other} cannot be compared: {self.reason}."


@dataclass(frozen=True)
class ComparedResults:
    """A results document, the letter that stands for it, and the name of the file or folder it came from."""

    letter: str
    name: str
    results: Results


@dataclass(frozen=True)
class Setting:
    """Something that was not the same everywhere; a text for each document."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Quantity:
    """One quantity of one flow in the first document and in another; None where it was not measured."""

    first: Estimate | None
    other: Estimate | None
    difference: Difference | None

    @property
    def relative(self) -> float | None:
        """The difference as a share of the first document's mean; None where that is missing or zero."""
        if self.difference is None or self.first is None or not self.first.mean:
            return None
        return self.difference.value / self.first.mean


@dataclass(frozen=True)
class FlowComparison:
    """One flow with one protocol in the first document and in another. Rates are bit/s, times seconds."""

    case: str
    flow: str
    protocol: str
    src: str
    dst: str
    quantities: dict[str, Quantity]
    """By the metric's name: those that are compared (`experiments.analysis.metrics`)."""
    valid: bool
    """False where a side has none but invalid runs."""

    @property
    def goodput_bps(self) -> Quantity:
        """Goodput."""
        return self.quantities["goodput_bps"]

    @property
    def delay_mean_s(self) -> Quantity:
        """The mean delay."""
        return self.quantities["delay_mean_s"]


@dataclass(frozen=True)
class Pair:
    """The first document and another one: the rows of both, and sentences on what only one of them has."""

    first: ComparedResults
    other: ComparedResults
    rows: tuple[FlowComparison, ...]
    lonely: tuple[str, ...]

    def cases(self) -> dict[str, list[FlowComparison]]:
        """Return the rows by case, in the first document's order."""
        return {
            name: [row for row in self.rows if row.case == name]
            for name in unique(row.case for row in self.rows)
        }


@dataclass(frozen=True)
class Comparison:
    """All documents, the settings in which they differ, and each but the first against the first."""

    documents: tuple[ComparedResults, ...]
    settings: tuple[Setting, ...]
    pairs: tuple[Pair, ...]
    warnings: tuple[str, ...]


def compare(named: Sequence[tuple[str, Results]], measures: Sequence[str] = ()) -> Comparison:
    """Compare each document with the first one; each has the name of its file or folder.

    `measures` are metrics that are compared beside those that always are.

    Raises:
        UnknownName: There is no such metric.
        NotComparable: The scenario or the nodes of the network differ, or nothing was run in both.
        ValueError: There are fewer than two or more than `MAX_DOCUMENTS` documents.
    """
    if not 2 <= len(named) <= MAX_DOCUMENTS:
        raise ValueError(f"2 to {MAX_DOCUMENTS} documents can be compared, not {len(named)}")
    documents = tuple(
        ComparedResults(letter, name, results)
        for letter, (name, results) in zip(LETTERS, named, strict=False)
    )
    first, *others = documents
    for other in others:
        _require_alike(first, other)
    metrics = _metrics(documents, measures)
    pairs = tuple(_pair(first, other, metrics) for other in others)
    return Comparison(documents, differing_settings(documents), pairs, tuple(_warnings(documents)))


def _require_alike(first: ComparedResults, other: ComparedResults) -> None:
    a, b = first.results, other.results
    reason = None
    if a.scenario != b.scenario:
        reason = f"the one is of scenario {a.scenario}, the other of {b.scenario}"
    elif _ends(a) != _ends(b):
        reason = "their networks have different nodes or links; run both with the same network and variant"
    if reason:
        raise NotComparable(first.name, other.name, reason)


def _ends(results: Results) -> tuple[list[Any], list[Any]]:
    nodes = [node.get("name") for node in results.network.get("nodes", ())]
    return nodes, [link.get("ends") for link in results.network.get("links", ())]


def _metrics(documents: Sequence[ComparedResults], measures: Sequence[str]) -> dict[str, MetricSpec]:
    """Return the metrics that are compared; those kept with the documents need no extension."""
    known = metrics_of([run for document in documents for run in document.results.runs])
    for name in measures:
        if name not in known:
            raise UnknownName("measure of flows", name, known)
    return {name: metric for name, metric in known.items() if metric.compared or name in measures}


def _pair(first: ComparedResults, other: ComparedResults, metrics: Mapping[str, MetricSpec]) -> Pair:
    a, b = _summaries(first.results), _summaries(other.results)
    common = [key for key in a if key in b]
    if not common:
        reason = "no flow was run with the same protocol in the same case of both"
        raise NotComparable(first.name, other.name, reason)
    lonely = [
        f"Only {document.letter} has "
        f"{', '.join(unique(f'{key[2]} in case {key[0]}' for key in mine if key not in theirs))}."
        for document, mine, theirs in ((first, a, b), (other, b, a))
        if any(key not in theirs for key in mine)
    ]
    return Pair(first, other, tuple(_row(a[key], b[key], metrics) for key in common), tuple(lonely))


def _summaries(results: Results) -> dict[Key, FlowSummary]:
    return {
        (summary.case, summary.flow, summary.protocol): summary
        for case in summarise(results)
        for group in case.flows.values()
        for summary in group
    }


def _row(a: FlowSummary, b: FlowSummary, metrics: Mapping[str, MetricSpec]) -> FlowComparison:
    quantities = {}
    for name, metric in metrics.items():
        first, other = a.values(metric), b.values(metric)
        difference = welch_of_seeds(first, other)
        quantities[name] = Quantity(estimate_of_seeds(first), estimate_of_seeds(other), difference)
    return FlowComparison(a.case, a.flow, a.protocol, a.src, a.dst, quantities, a.valid and b.valid)


def differing_settings(documents: Sequence[ComparedResults]) -> tuple[Setting, ...]:
    """Return what was not set or not found alike in all documents, in a fixed order."""
    described = [dict(_settings(document.results)) for document in documents]
    names = unique(name for settings in described for name in settings)
    rows = [Setting(name, tuple(settings.get(name, NOT_SET) for settings in described)) for name in names]
    return tuple(row for row in rows if len(set(row.values)) > 1)


def _settings(results: Results) -> Iterator[tuple[str, str]]:
    environment, runs = results.environment, results.runs
    yield "engine", results.engine
    yield "variant", results.variant or NOT_SET
    yield "duration", _either(f"{run.duration_s:g} s" for run in runs)
    yield "seeds", ", ".join(str(seed) for seed in sorted({run.seed for run in runs}))
    told_here = {key: value for key, value in results.settings.items() if key not in IGNORED_KEYS}
    for name, value in leaves(told_here):
        yield name, DEFAULT if value is None else _text(value)
    yield from _links(results)
    yield (
        "congestion control",
        _either(flow.congestion_control for run in runs for flow in run.flows if flow.congestion_control),
    )
    for name in sorted({name for run in runs for name in run.sysctls}):
        yield f"{name} of the hosts", _either(run.sysctls[name] for run in runs if name in run.sysctls)
    yield "link backend", environment.link_backend or NOT_SET
    yield "datapath", environment.datapath or NOT_SET
    yield "kernel", environment.kernel
    yield "machine", f"{environment.machine}, {environment.cpus} cores"
    yield "queueing disciplines", ", ".join(sorted(environment.qdiscs)) or NOT_SET
    yield "revision", environment.git_revision or NOT_SET
    for name, value in sorted(environment.versions.items()):
        yield f"version of {name}", value
    for name, value in sorted(environment.sysctls.items()):
        yield f"{name} of the machine", value


def _links(results: Results) -> Iterator[tuple[str, str]]:
    for link in results.network.get("links", ()):
        name = "-".join(link["ends"])
        for key, value in link.items():
            if key != "ends":
                yield f"links.{name}.{key}", NOT_SET if value is None else _text(value)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _either(values: Iterable[str]) -> str:
    return " or ".join(unique(values)) or NOT_SET


def _warnings(documents: Sequence[ComparedResults]) -> Iterator[str]:
    for document in documents:
        for sentence in validity_sentences(document.results):
            yield f"{document.letter}: {sentence}"
    first, *others = documents
    for other in others:
        if dict(_links(first.results)) != dict(_links(other.results)):
            yield (
                f"The links of {first.letter} and {other.letter} are not the same, so differences may be "
                "theirs; what differs is listed."
            )
        asked = [_asked(document.results) for document in (first, other)]
        changed = [
            f"{protocol}, flow {flow}, case {case}"
            for (case, flow, protocol), rate in asked[0].items()
            if asked[1].get((case, flow, protocol), rate) != rate
        ]
        if changed:
            yield f"{first.letter} and {other.letter} asked for different goodputs: {'; '.join(changed)}."


def _asked(results: Results) -> dict[Key, float]:
    return {key: summary.requested_bps for key, summary in _summaries(results).items()}
