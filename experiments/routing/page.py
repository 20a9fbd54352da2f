"""What `mstcp-lab solve` found, as a page on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gomr import Demand
from gomr.failures import Survey
from rich.console import Console
from rich.table import Table

from experiments.report import units
from experiments.report.terminal import filled, printing, visible
from experiments.routing.document import FlowRow, Solved
from experiments.routing.events import percentiles_ms

MAX_LINKS = 10
MAX_FLOWS = 5
FULL = 1 - 1e-9
"""Share of its capacity from which a link, and of its request from which a flow, counts as full."""


@dataclass(frozen=True)
class BusyLink:
    """One direction of a link: its load, the flows over it, and how many of those get less than they ask."""

    edge: str
    capacity_bps: float
    utilisation: float
    flows: int
    short: int


def busiest_links(solved: Solved) -> list[BusyLink]:
    """Return the edges that carry something: the fullest first, and of those the one most flows miss."""
    over: dict[str, list[str]] = {}
    for flow, paths in solved.allocation.paths.items():
        for edge in {edge for path in paths for edge in path.edges}:
            over.setdefault(edge, []).append(flow)
    short = {demand.id for demand in solved.problem.demands if not _is_served(solved, demand)}
    loads_bps = solved.loads_bps
    busy = [
        BusyLink(
            edge.id,
            edge.capacity_bps,
            min(1.0, loads_bps[edge.id] / edge.capacity_bps),
            len(over.get(edge.id, ())),
            sum(flow in short for flow in over.get(edge.id, ())),
        )
        for edge in solved.problem.edges
        if loads_bps[edge.id] > 0
    ]
    return sorted(busy, key=lambda link: (-min(link.utilisation, FULL), -link.short, link.edge))


def slowest_flows(solved: Solved) -> list[FlowRow]:
    """Return the flows that get something, the longest mean delay first."""
    flows = [row for row in solved.flows() if row.paths]
    return sorted(flows, key=lambda row: -(row.delay_s or 0.0))


def flow_counts(solved: Solved) -> Counter[str]:
    """Return how many flows get `full`, `part` or `nothing` of what they ask for, and how many are `idle`."""

    def fares(demand: Demand) -> str:
        if demand.rate_bps == 0:
            return "idle"
        if not solved.allocation.paths[demand.id]:
            return "nothing"
        return "full" if _is_served(solved, demand) else "part"

    return Counter(map(fares, solved.problem.demands))


def _is_served(solved: Solved, demand: Demand) -> bool:
    return solved.allocation.rate_bps(demand.id) >= demand.rate_bps * FULL


def print_page(solved: Solved, described: str, console: Console) -> None:
    """Print what was found; plain ASCII where there is no terminal."""
    busy, slow = busiest_links(solved), slowest_flows(solved)
    with printing(console) as plain:
        for sentence in sentences(solved, described, busy):
            console.print(visible(sentence, plain), highlight=False)
        tables = [_links_table(busy, plain), _flows_table(slow, plain)]
        if solved.survey is not None:
            tables.append(_failures_table(solved.survey, plain))
        for part in tables:
            console.print()
            console.print(part, highlight=False)


def sentences(solved: Solved, described: str, busy: list[BusyLink]) -> Iterator[str]:
    """Yield what was found in sentences, the network and its demands first."""
    network = solved.network
    yield f"{network.name}: {len(network.nodes)} nodes, {len(network.links)} links; {described}"
    if network.description and network.description != network.name:
        yield f"  {network.description}"
    for note in solved.notes:
        yield f"  Note: {note}"
    yield from results(solved, busy)


def results(solved: Solved, busy: list[BusyLink]) -> Iterator[str]:
    """Yield what was admitted, its proof and its cost in sentences."""
    allocation = solved.allocation
    asked_bps = allocation.requested_bps
    share = f" ({units.percent(allocation.admitted_bps / asked_bps)} %)" if asked_bps else ""
    admitted = f"{rate_text(allocation.admitted_bps)} of {rate_text(asked_bps)}{share}"
    yield f"Admitted: {admitted}, {allocation.objective}"
    counts = flow_counts(solved)
    idle = f", {counts['idle']} that ask for nothing" if counts["idle"] else ""
    yield (
        f"Flows: {counts['full']} in full, {counts['part']} in part, {counts['nothing']} with nothing{idle}, "
        f"over {solved.path_count} paths"
    )
    if allocation.admitted_bps:
        yield f"Mean delay of a bit: {units.ms(allocation.cost_bps_s / allocation.admitted_bps)} ms"
    full = sum(link.utilisation >= FULL for link in busy)
    yield f"Links: {full} of {len(solved.problem.edges)} directions full, {len(busy)} in use"
    if allocation.timed_out:
        yield "The time was up first: the best answer until then, no worse than the gap says"
    what = "utility" if allocation.objective == "fair" else "admitted"
    yield (
        f"Certificate: {what} {allocation.value_bps:.10g} of at most {allocation.upper_bound_bps:.10g} bit/s "
        f"(gap {allocation.gap:.1e}); largest violation {allocation.max_violation_bps:.1e} bit/s"
    )
    yield (
        f"CPU time of the thread: building {solved.build_ms:.3g} ms, "
        f"solving {solved.solve_ms:.3g} ms ({allocation.engine})"
    )
    if solved.events is not None:
        yield f"  {_times('flow events', solved.events.flow_ms)}"
        yield f"  {_times('link failures', solved.events.link_failure_ms)}"


def _times(what: str, times_ms: tuple[float, ...]) -> str:
    quantiles = percentiles_ms(times_ms)
    return f"{len(times_ms)} {what}: median {quantiles['p50']:.3g} ms, 95 % within {quantiles['p95']:.3g} ms"


def rate_text(rate_bps: float) -> str:
    """Return a rate with its unit, as `2.5 Gbit/s`."""
    label = units.rate_label(rate_bps)
    return f"{label[:-1]} {label[-1]}bit/s" if label[-1].isalpha() else f"{label} bit/s"


def _links_table(busy: list[BusyLink], plain: bool) -> Table:
    full = any(link.utilisation >= FULL for link in busy)
    shown = [link for link in busy if link.utilisation >= FULL] or busy
    rows = (
        [
            link.edge,
            rate_text(link.capacity_bps),
            units.percent(link.utilisation, 1),
            str(link.flows),
            str(link.short),
        ]
        for link in shown[:MAX_LINKS]
    )
    title = "Bottlenecks" if full else "Fullest links (none is full)"
    return filled(title, ["link"], ("capacity", "used %", "flows", "of them short"), rows, plain)


def _flows_table(slow: list[FlowRow], plain: bool) -> Table:
    rows = (
        [
            flow.demand.id,
            flow.demand.source,
            flow.demand.destination,
            rate_text(flow.demand.rate_bps),
            rate_text(flow.admitted_bps),
            str(len(flow.paths)),
            units.ms(flow.delay_s or 0.0),
        ]
        for flow in slow[:MAX_FLOWS]
    )
    return filled("Slowest flows", ("flow", "from", "to"), ("asked", "got", "paths", "delay ms"), rows, plain)


def _failures_table(survey: Survey, plain: bool) -> Table:
    known = f"; {survey.unsolved} of them by bounds only" if survey.unsolved else ""
    rows = (
        [
            f"{outcome.failure.kind} {outcome.failure.name}",
            ("" if outcome.is_exact else "at least ") + rate_text(outcome.admitted_bps),
            rate_text(outcome.lost_bps),
            units.percent(outcome.lost_bps / survey.admitted_bps if survey.admitted_bps else 0.0, 1),
        ]
        for outcome in survey.worst_first()[:MAX_LINKS]
    )
    title = f"Worst of {len(survey.outcomes)} failures{known}"
    return filled(title, ["fails"], ("admitted", "lost", "lost %"), rows, plain)
