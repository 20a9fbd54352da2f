"""The cells as a table in Markdown, what they say beside each other, and a plot of time against size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.gomr.cells import ENGINE_NAMES, PATH_FORM, Cell
from experiments.report.canvas import Plot, finish, new_figure, style
from experiments.report.palette import LOOKS

HEADER = (
    "network", "engine", "from scratch", "flow event (p95)", "link failure (p95)", "3 x load", "admitted",
    "gap", "peak",
)  # fmt: skip


def markdown(cells: Sequence[Cell], budget_s: float) -> str:
    """Return the table and the comparisons."""
    lines = [_row(HEADER), _row(["---"] * len(HEADER))]
    lines += [_row(_cells_of(cell, budget_s)) for cell in cells]
    return "\n".join([*lines, "", *(f"- {sentence}" for sentence in comparisons(cells))]) + "\n"


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _cells_of(cell: Cell, budget_s: float) -> list[str]:
    over = f"over {budget_s:g} s"
    name = f"{cell.network}: {cell.nodes} nodes, {cell.edges} edges, {cell.flows} flows"
    if cell.cold_ms is None:
        # What failed for another reason than time says so.
        why = over if cell.failure is None or "time" in cell.failure else cell.failure
        return [name, cell.engine, why, "", "", "", "", "", ""]
    overload = _ms(cell.overload_ms) if cell.overload_ms is not None else over if cell.overload_tried else ""
    return [
        name,
        cell.engine,
        _ms(cell.cold_ms),
        _quantiles(cell.flow_ms),
        _quantiles(cell.link_failure_ms),
        overload,
        "" if cell.admitted_share is None else f"{cell.admitted_share * 100:.2f} %",
        "" if cell.gap is None or cell.engine == PATH_FORM else f"{cell.gap:.0e}",
        "" if cell.peak_mb is None else f"{cell.peak_mb:.0f} MB",
    ]


def _ms(time_ms: float) -> str:
    return f"{time_ms / 1e3:.3g} s" if time_ms >= 1000 else f"{time_ms:.3g} ms"


def _quantiles(times_ms: dict[str, float] | None) -> str:
    return "" if times_ms is None else f"{_ms(times_ms['p50'])} ({_ms(times_ms['p95'])})"


def comparisons(cells: Sequence[Cell]) -> list[str]:
    """Return what the engines say beside each other, a sentence each."""
    sentences = []
    for network in dict.fromkeys(cell.network for cell in cells):
        by_engine = {cell.engine: cell for cell in cells if cell.network == network}
        native = by_engine.get("native")
        if native is None or native.cold_ms is None:
            continue
        for name in ("pulp", PATH_FORM, "highs"):
            other = by_engine.get(name)
            if other is not None and other.cold_ms is not None:
                ratio = other.cold_ms / native.cold_ms
                sentences.append(f"{network}: {name} takes {ratio:.3g} times as long as native")
        path_form = by_engine.get(PATH_FORM)
        if path_form is not None and path_form.admitted_bps is not None and native.admitted_bps:
            loss = 1 - path_form.admitted_bps / native.admitted_bps
            sentences.append(
                f"{network}: with the 8 shortest paths alone {loss * 100:.2g} % of the throughput are lost"
            )
        highs = by_engine.get("highs")
        if highs is not None and native.overload_ms is not None and highs.overload_ms is not None:
            ratio = native.overload_ms / highs.overload_ms
            sentences.append(
                f"{network}: at 3 times the load native takes {ratio:.2g} times as long as highs"
            )
    return sentences


def plot(cells: Sequence[Cell]) -> Plot:
    """Return the time from scratch against the size of the network, a line for each engine."""
    title = "Time from scratch against size"
    with style():
        figure = new_figure(5.2, 3.6)
        axes = figure.add_subplot()
        for engine, look in zip(ENGINE_NAMES, LOOKS, strict=False):
            points = sorted(
                (cell.nodes * cell.flows, cell.cold_ms)
                for cell in cells
                if cell.engine == engine and cell.cold_ms is not None
            )
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    color=look.colour, marker=look.marker, linestyle=look.dashes, markersize=5, label=engine,
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("nodes x flows")
        axes.set_ylabel("CPU time (ms)")
        axes.set_title(title)
        if axes.get_lines():
            axes.legend()
        return finish(figure, "gomr-times", title, "Medians of the CPU time of one thread.")
