"""The report as one HTML page with its plots inside, and the plots as files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from experiments.model.results import LinkResult, Results, RunResult
from experiments.report import units
from experiments.report.canvas import Plot
from experiments.report.changes import change_rows, change_sentences
from experiments.report.collisions import Collisions, collisions
from experiments.report.completions import Completions, completions
from experiments.report.notes import (
    Notes,
    flow_notes,
    general_notes,
    run_name,
    run_problems,
    validity_sentences,
)
from experiments.report.pages import distinct, render_template, write_page
from experiments.report.plot_completions import plot_completions
from experiments.report.plot_delay import plot_delays
from experiments.report.plot_goodput import plot_goodputs
from experiments.report.plot_rates import plot_rates
from experiments.report.plot_topology import plot_topology
from experiments.report.recovery import Recovery, recoveries
from experiments.report.sharing import sharing_sentences
from experiments.report.splits import FlowSplit, flow_splits
from experiments.report.summary import CaseSummary, FlowSummary, summarise, summarise_links, unique, worst
from topologies import Network

REPORT = "report.html"


@dataclass
class CaseSection:
    """One case on the page.

    `rows` holds for each flow its summaries with the marks of their footnotes, by cell; `links` for each
    direction of a link its summary with each protocol; `gaps` says which plots are missing and why.
    """

    summary: CaseSummary
    with_paper: bool
    with_paper_ratio: bool
    notes: Notes
    rows: dict[str, list[tuple[FlowSummary, dict[str, str]]]]
    links: dict[str, list[LinkResult | None]]
    splits: list[FlowSplit]
    recoveries: list[Recovery]
    collisions: list[Collisions]
    completions: dict[str, list[Completions]]
    plots: dict[str, list[Plot]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)


def write_report(results: Results, out_dir: Path) -> Path:
    """Write `report.html`, whole in one file, and its plots as `plots/*` (SVG, PNG, PDF).

    The same document gives the same bytes.

    Raises:
        OutputError: The folder or a file in it cannot be written.
    """
    sections = make_sections(results)
    return write_page(render(results, sections), all_plots(sections), out_dir, REPORT)


def render(results: Results, sections: list[CaseSection]) -> str:
    """Return the page as HTML."""
    return render_template(
        "report.html.j2",
        results=results,
        sections=sections,
        problems=validity_sentences(results),
        general_notes=general_notes(results),
        dates=_dates(results.runs),
        run_name=run_name,
        change_rows=change_rows,
        sharing_sentences=sharing_sentences,
        change_sentences=change_sentences(results.runs),
        run_problems=run_problems,
        worst_lateness_us=lambda run: worst(link.lateness_max_us for link in run.links),
        packets_dropped=_packets_dropped,
        lateness=[link for link in summarise_links(results.runs) if link.lateness_mean_us is not None],
        host_sysctls=_host_sysctls(results.runs),
    )


def make_sections(results: Results) -> list[CaseSection]:
    """Summarise and draw each case; no two plots have the same name."""
    network = network_of(results)
    sections = [_section(summary) for summary in summarise(results)]
    taken: set[str] = set()
    for section in sections:
        _draw(section, network)
        section.plots = {kind: distinct(plots, taken) for kind, plots in section.plots.items()}
    return sections


def network_of(results: Results) -> Network | None:
    """Return the network of a document; None where it describes none."""
    try:
        return Network.model_validate(results.network)
    except ValidationError:
        return None


def _section(summary: CaseSummary) -> CaseSection:
    papers = [entry.paper for group in summary.flows.values() for entry in group if entry.paper]
    notes = Notes()
    measured = [
        {link.link: link for link in summarise_links(summary.usable(name))} for name in summary.protocols
    ]
    names = unique(name for links in measured for name in links)
    return CaseSection(
        summary,
        bool(papers),
        any(paper.goodput_ratio is not None for paper in papers),
        notes,
        {
            flow: [(entry, _marks(entry, notes, bool(papers))) for entry in group]
            for flow, group in summary.flows.items()
        },
        {name: [values.get(name) for values in measured] for name in names},
        flow_splits(summary.flows),
        recoveries(summary.flows),
        collisions(summary),
        completions(summary.flows),
    )


def _marks(entry: FlowSummary, notes: Notes, with_paper: bool) -> dict[str, str]:
    texts: dict[str, str | None] = vars(flow_notes(entry))
    return {
        cell: notes.mark(text) if with_paper or not cell.startswith("paper") else ""
        for cell, text in texts.items()
    }


def _draw(section: CaseSection, network: Network | None) -> None:
    summary = section.summary
    if summary.flows:
        section.plots["Goodput"] = plot_goodputs(summary)
        section.plots["Delay"] = plot_delays(summary)
        section.plots["Flow completion times"] = plot_completions(summary)
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


def all_plots(sections: list[CaseSection]) -> Iterator[Plot]:
    """Yield the plots of all sections in the order of the page."""
    for section in sections:
        for plots in section.plots.values():
            yield from plots


def _dates(runs: list[RunResult]) -> str:
    days = sorted({run.started_at.partition("T")[0] for run in runs if run.started_at})
    return units.MISSING if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _packets_dropped(run: RunResult) -> int | None:
    counted = [link.packets_dropped for link in run.links if link.packets_dropped is not None]
    return sum(counted) if counted else None


def _host_sysctls(runs: list[RunResult]) -> dict[str, str]:
    """Return the hosts' settings over all runs; several values of one setting are joined by `or`."""
    names = unique(name for run in runs for name in run.sysctls)
    return {
        name: " or ".join(unique(run.sysctls[name] for run in runs if name in run.sysctls)) for name in names
    }
