"""A results document as a table in LaTeX: a row for each flow and protocol, means with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.metrics import MetricSpec, metrics_of
from experiments.analysis.statistics import estimate_of_seeds
from experiments.errors import UnknownName
from experiments.model.results import Results
from experiments.report.summary import FlowSummary, summarise
from experiments.report.units import axis_unit

MISSING = "--"
ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def latex_table(results: Results, measures: Sequence[str]) -> str:
    """Return a `tabular` for the packages booktabs and inputenc (UnknownName: there is no such metric)."""
    known = metrics_of(results.runs)
    for name in measures:
        if name not in known:
            raise UnknownName("measure of flows", name, known)
    metrics = [known[name] for name in measures]
    rows = [summary for case in summarise(results) for flow in case.flows.values() for summary in flow]
    units = [_unit(metric, rows) for metric in metrics]
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{lll{'r' * len(metrics)}}}",
        r"\toprule",
        _line(["case", "flow", "protocol", *(heading for _, heading in units)]),
        r"\midrule",
    ]
    for row in rows:
        figures = [_figure(row, metric, scale) for metric, (scale, _) in zip(metrics, units, strict=True)]
        lines.append(_line([*map(_escaped, (row.case, row.flow, row.protocol + row.mark)), *figures]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _unit(metric: MetricSpec, rows: Sequence[FlowSummary]) -> tuple[float, str]:
    values = [abs(value) for row in rows for value in row.values(metric)]
    scale, heading = axis_unit(metric.name, max(values, default=1.0))
    return scale, _escaped(heading).replace("µ", r"\textmu{}")


def _figure(row: FlowSummary, metric: MetricSpec, scale: float) -> str:
    computed = estimate_of_seeds([value * scale for value in row.values(metric)])
    if computed is None:
        return MISSING
    if computed.half_width is None:
        return f"{computed.mean:.2f}"
    return rf"{computed.mean:.2f} $\pm$ {computed.half_width:.2f}"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escaped(text: str) -> str:
    return "".join(ESCAPED.get(letter, letter) for letter in text)
