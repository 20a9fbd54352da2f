"""The cells as a table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gomr.cells import PATH_FORM, Cell
from benchmarks.pages import markdown_table

HEADER = (
    "network", "engine", "from scratch", "flow event (p95)", "link failure (p95)", "3 x load", "admitted",
    "gap", "peak",
)  # fmt: skip


def markdown(cells: Sequence[Cell], budget_s: float) -> str:
    """Return the table."""
    lines = markdown_table(HEADER, (_cells_of(cell, budget_s) for cell in cells))
    return "\n".join(lines) + "\n"


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
