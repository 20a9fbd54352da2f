"""The report as one HTML page with its plots inside, and the plots as files beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import jinja2
from pydantic import ValidationError

from experiments.errors import OutputError
from experiments.report import units
from experiments.report.canvas import Plot, inline
from experiments.report.notes import (
    Notes,
    flow_notes,
    general_notes,
    run_name,
    run_problems,
    validity_sentences,
)
from experiments.report.plot_delay import plot_delays
from experiments.report.plot_goodput import plot_goodputs
from experiments.report.plot_rates import plot_rates
from experiments.report.plot_topology import plot_topology
from experiments.report.summary import (
    FlowSummary,
    LinkSummary,
    ScenarioSummary,
    summarise,
    summarise_links,
    unique,
)
from experiments.results import Results, RunResult
from topologies import Network

REPORT = "report.html"
PLOTS = "plots"


@dataclass
class Section:
    """One scenario on the page.

    `rows` holds for each flow its summaries with the marks of their footnotes, by cell; `links` for each
    direction of a link its summary with each protocol; `gaps` says which plots are missing and why.
    """

    summary: ScenarioSummary
    notes: Notes
    rows: dict[str, list[tuple[FlowSummary, dict[str, str]]]]
    with_paper: bool
    with_paper_ratio: bool
    links: dict[str, list[LinkSummary | None]]
    plots: dict[str, list[Plot]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)


def write_report(results: Results, out_dir: Path) -> Path:
    """Write `report.html`, whole in one file, and its plots as `plots/*.svg` and `plots/*.png`.

    The same document gives the same bytes.

    Args:
        results: The document.
        out_dir: A folder; it is made if it is not there.

    Returns:
        The path of the page.

    Raises:
        OutputError: The folder or a file in it cannot be written.
    """
    sections = make_sections(results)
    page = render(results, sections)
    path = out_dir / REPORT
    try:
        _write_plots(sections, out_dir / PLOTS)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(str(out_dir), error.strerror or str(error)) from error
    return path


def render(results: Results, sections: list[Section]) -> str:
    """Return the page as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        mbps=units.mbps, ms=units.ms, percent=units.percent, size=units.size,
        interval=units.interval, svg=inline, pretty=_pretty, groups=_thousands,
    )  # fmt: skip
    stylesheet = (Path(__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html.j2").render(
        results=results,
        sections=sections,
        stylesheet=stylesheet,
        missing=units.MISSING,
        problems=validity_sentences(results),
        general_notes=general_notes(results),
        dates=_dates(results.runs),
        run_name=run_name,
        run_problems=run_problems,
        lateness=[link for link in summarise_links(results.runs) if link.lateness_mean_us is not None],
        host_sysctls=_host_sysctls(results.runs),
        unique=unique,
    )


def make_sections(results: Results) -> list[Section]:
    """Summarise and draw each scenario; no two plots have the same name."""
    network = _network(results)
    sections = []
    taken: set[str] = set()
    for summary in summarise(results):
        section = _section(summary)
        _draw(section, network)
        section.plots = {
            kind: [replace(plot, name=_unused(plot.name, taken)) for plot in plots]
            for kind, plots in section.plots.items()
        }
        sections.append(section)
    return sections


def _section(summary: ScenarioSummary) -> Section:
    papers = [entry.paper for group in summary.flows.values() for entry in group if entry.paper]
    with_paper = bool(papers)
    with_ratio = any(paper.goodput_ratio is not None for paper in papers)
    notes = Notes()
    rows = {
        flow: [(entry, _marks(entry, notes, with_paper)) for entry in group]
        for flow, group in summary.flows.items()
    }
    measured = [
        {link.link: link for link in summarise_links(summary.usable(name))} for name in summary.protocols
    ]
    names = unique(name for links in measured for name in links)
    links = {name: [found.get(name) for found in measured] for name in names}
    return Section(summary, notes, rows, with_paper, with_ratio, links)


def _marks(entry: FlowSummary, notes: Notes, with_paper: bool) -> dict[str, str]:
    texts: dict[str, str | None] = vars(flow_notes(entry))
    return {
        cell: notes.mark(text) if with_paper or not cell.startswith("paper") else ""
        for cell, text in texts.items()
    }


def _draw(section: Section, network: Network | None) -> None:
    summary = section.summary
    if summary.flows:
        section.plots["Goodput"] = plot_goodputs(summary)
        section.plots["Delay"] = plot_delays(summary)
        section.plots["Rate over time"] = plot_rates(summary)
    if not section.plots.get("Delay"):
        section.gaps.append("There is no plot of the delay: nothing arrived.")
    if network is None:
        section.gaps.append("There is no drawing of the links: the document does not describe the network.")
    elif not section.links:
        section.gaps.append("There is no drawing of the links: no run measured any.")
    else:
        section.plots["Link utilisation"] = [
            plot_topology(summary, name, network) for name in summary.protocols
        ]


def _unused(name: str, taken: set[str]) -> str:
    """Return `name`, with a number behind it where it is taken already; takes it."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return found


def _network(results: Results) -> Network | None:
    try:
        return Network.model_validate(results.network)
    except ValidationError:
        return None


def _write_plots(sections: list[Section], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for plot in all_plots(sections):
        (folder / f"{plot.name}.svg").write_text(plot.svg, encoding="utf-8")
        (folder / f"{plot.name}.png").write_bytes(plot.png)


def all_plots(sections: list[Section]) -> Iterator[Plot]:
    """Yield the plots of all sections in the order of the page."""
    for section in sections:
        for plots in section.plots.values():
            yield from plots


def _dates(runs: list[RunResult]) -> str:
    days = sorted({run.started_at.partition("T")[0] for run in runs})
    return units.MISSING if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _host_sysctls(runs: list[RunResult]) -> dict[str, str]:
    """Return the hosts' settings over all runs; several values of one setting are joined by `or`."""
    names = unique(name for run in runs for name in run.sysctls)
    return {
        name: " or ".join(unique(run.sysctls[name] for run in runs if name in run.sysctls)) for name in names
    }


def _pretty(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)


def _thousands(value: int) -> str:
    """Return a whole number with thin spaces between its groups of three digits."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
