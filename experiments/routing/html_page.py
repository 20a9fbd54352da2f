"""What `mstcp-lab solve` found, as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from gomr.failures import Outcome

from experiments.report.canvas import Plot
from experiments.report.pages import render_template
from experiments.report.plot_topology import draw_network
from experiments.report.plot_utilisation import plot_utilisations
from experiments.routing.document import FlowRow, Solved
from experiments.routing.page import FULL, busiest_links, flow_counts, rate_text, results

MAX_FLOWS = 200
MAX_LINKS = 100
MAX_FAILURES = 50
MAX_PATHS = 4


def starved_first(solved: Solved) -> list[FlowRow]:
    """Return the flows, those that get the least of their request first, of equal ones the largest."""
    return sorted(solved.flows(), key=lambda row: (min(row.share, FULL), -row.demand.rate_bps))


def utilisations(solved: Solved) -> dict[str, float]:
    """Return the utilisation of every direction of a link that has a capacity, from 0 to 1."""
    loads_bps = solved.loads_bps
    return {
        edge.id: min(1.0, loads_bps[edge.id] / edge.capacity_bps)
        for edge in solved.problem.edges
        if edge.capacity_bps > 0
    }


def draw_map(solved: Solved, described: str) -> Plot:
    """Draw the network by utilisation."""
    title = f"{solved.network.name}, {described}"
    return draw_network(
        solved.network,
        utilisations(solved),
        name="network",
        heading=title,
        title=f"Link utilisation: {title}",
    )


def plots_of(solved: Solved) -> list[Plot]:
    """Draw what stands below the map: the distribution of utilisation, and what failures cost."""
    plots = [plot_utilisations(list(utilisations(solved).values()))]
    if solved.survey is not None and solved.survey.admitted_bps:
        plots.append(_draw_failures(solved, solved.survey.outcomes, solved.survey.admitted_bps))
    return plots


def _draw_failures(solved: Solved, outcomes: tuple[Outcome, ...], admitted_bps: float) -> Plot:
    """Draw the share of the throughput that the failure of each link and node costs."""
    links: dict[str, float | None] = {}
    nodes: dict[str, float] = {}
    for outcome in outcomes:
        lost = outcome.lost_bps / admitted_bps
        if outcome.failure.kind == "node":
            nodes[outcome.failure.name] = lost
        else:
            links |= dict.fromkeys(outcome.failure.edges, lost)
    worst = max((*(share for share in links.values() if share is not None), *nodes.values()), default=0.0)
    return draw_network(
        solved.network,
        links,
        name="failures",
        heading="Throughput lost if a link or node fails",
        title="Share of the admitted throughput that is lost if a link or node fails",
        full_scale=worst or 1.0,
        nodes=nodes,
        caption="The colour of a link or node, and the number beside a link, is the share of the admitted "
        "throughput that its failure costs, after all else is routed again. Hatched: not surveyed.",
    )


def render_page(solved: Solved, described: str, drawing: Plot, plots: list[Plot]) -> str:
    """Return the page."""
    flows = starved_first(solved)
    busy = busiest_links(solved)
    survey = solved.survey
    return render_template(
        "solution.html.j2",
        solved=solved,
        described=described,
        allocation=solved.allocation,
        sentences=list(results(solved, busy)),
        counts=flow_counts(solved),
        drawing=drawing,
        plots=plots,
        flows=flows[:MAX_FLOWS],
        flows_in_all=len(flows),
        most_paths=MAX_PATHS,
        links=busy[:MAX_LINKS],
        links_in_all=len(solved.problem.edges),
        survey=survey,
        outcomes=[] if survey is None else survey.worst_first()[:MAX_FAILURES],
        rate=rate_text,
        joined="-".join,
        files=list(_files(solved)),
    )


def _files(solved: Solved) -> Iterator[tuple[str, str]]:
    yield "flows.csv", "every flow: request, rate, mean delay"
    yield "paths.csv", "every path with its rate and delay"
    yield "links.csv", "every direction of a link with its load"
    if solved.survey is not None:
        yield "failures.csv", "what is admitted after each failure"
        yield "backups.csv", "a backup for every path in use"
    yield "allocation.json", "all of it as one document"
