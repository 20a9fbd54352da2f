"""The tables of docs/simulator.md from runs of both simulators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from benchmarks.pages import markdown_table
from benchmarks.tables.cells import interval

from .cases import LOSSES
from .outcomes import Outcome

Pairs = Sequence[tuple[Outcome, Outcome]]
Figure = Callable[[Outcome], float]


def queue_lines(pairs: Pairs) -> Iterator[str]:
    """Yield the table of the butterfly with short queues."""
    rows: list[Iterable[str]] = []
    for flow, paths in enumerate((("S0-S4", "S2-S3"), ("S1-S5", "S2-S3"))):
        rows += _flow_rows(pairs, flow)
        for index, path in enumerate(paths):
            rows += _stream_rows(pairs, 2 * flow + index, f"flow {flow + 1}'s stream on {path}")
    return markdown_table((f"queues of 50 packets, {len(pairs)} seeds", "ns-3", "ours"), rows)


def _flow_rows(pairs: Pairs, flow: int) -> Iterator[list[str]]:
    name = f"flow {flow + 1}"
    yield _row(f"{name}, mean delay, ms", pairs, lambda run: run.flows[flow].delay_mean_s * 1e3)
    yield _row(f"{name}, goodput, Mbit/s", pairs, lambda run: run.flows[flow].goodput_bps / 1e6, 2)


def _stream_rows(pairs: Pairs, place: int, name: str) -> Iterator[list[str]]:
    yield _row(f"{name}, segments sent again", pairs, lambda run: run.streams[place].resent, 0)
    yield _row(f"{name}, recoveries", pairs, lambda run: run.streams[place].recoveries, 0)
    yield _row(f"{name}, timeouts", pairs, lambda run: run.streams[place].timeouts)


def loss_lines(cases: Mapping[str, Pairs]) -> Iterator[str]:
    """Yield the table of random loss."""
    count = min(len(pairs) for pairs in cases.values())
    kinds = ("SACK: ns-3", "ours", "ours / ns-3", "none: ns-3", "ours", "ours / ns-3")
    rows = []
    for loss in LOSSES:
        cells = [f"{loss * 100:g} %"]
        for kind in ("sack", "none"):
            pairs = cases[f"{kind} {loss}"]
            rates = [[run.streams[0].goodput_bps / 1e6 for run in runs] for runs in zip(*pairs, strict=True)]
            cells += [interval(side, digits=3) for side in rates]
            cells.append(interval((ours / ns3 for ns3, ours in zip(*rates, strict=True)), digits=4))
        rows.append(cells)
    return markdown_table((f"loss, {count} seeds", *kinds), rows)


def _row(name: str, pairs: Pairs, figure: Figure, digits: int = 1) -> list[str]:
    return [name, *(interval(map(figure, runs), digits=digits) for runs in zip(*pairs, strict=True))]
