"""Footnotes: why a cell is empty or must be read with care, and what holds for a whole document."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.model.results import CONSTANT_RATE, Results, RunResult
from experiments.protocols import PROTOCOLS
from experiments.report import units
from experiments.report.changes import change_sentences
from experiments.report.reference import reference_for
from experiments.report.summary import FlowSummary

REQUEST_TOLERANCE = 0.005
"""Relative difference between our requested rate and the paper's from which on a note says so."""


class Notes:
    """Footnotes in the order of their first use, each text once; marks are a, b, ..., z, aa, ab, ..."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, text: str | None) -> str:
        """Return the mark of a footnote; empty for None."""
        if text is None:
            return ""
        return self._marks.setdefault(text, _letters(len(self._marks)))

    def items(self) -> list[tuple[str, str]]:
        """Return marks and texts."""
        return [(mark, text) for text, mark in self._marks.items()]


@dataclass(frozen=True)
class FlowNotes:
    """What the cells of one flow with one protocol need said; None where a cell speaks for itself."""

    row: str | None
    requested: str | None
    ratio: str | None
    allocated: str | None
    delay: str | None
    out_of_order: str | None
    reorder_buffer: str | None
    paper: str | None
    paper_delay: str | None


_RATIO_NOTE = "a controller is asked for this rate; what is sent depends on the workload, not on it"
_RATIO_NOTES = {
    "onoff": "asked for in its on periods alone: compare the goodput while active",
    CONSTANT_RATE: "no rate was asked for",
}


def flow_notes(flow: FlowSummary) -> FlowNotes:
    """Return the footnotes that a flow's cells need."""
    paper = flow.paper
    unseen, no_buffer = flow.out_of_order_ratio is None, flow.reorder_buffer_max_bytes is None
    return FlowNotes(
        row=_row_note(flow),
        requested=_request_note(flow),
        ratio=_RATIO_NOTES.get(flow.workload, _RATIO_NOTE) if flow.goodput_ratio is None else None,
        allocated=_allocation_note(flow),
        delay="nothing arrived, so there is no delay" if flow.delay_mean_s is None else None,
        out_of_order="the order of arrival cannot be seen with this protocol" if unseen else None,
        reorder_buffer="this protocol has no reorder buffer that can be read" if no_buffer else None,
        paper="the paper's table has no such row" if paper is None else None,
        paper_delay=f"nothing reproduces it: {paper.doubtful}" if paper and paper.doubtful else None,
    )


def general_notes(results: Results) -> list[str]:
    """Return what a reader of the tables must know: runs that were rerun, how to compare with the paper."""
    notes = change_sentences(results.runs) + _repetition_notes(results) + environment_sentences(results)
    reference = reference_for(results.scenario)
    if reference is None:
        return notes
    if results.environment.link_backend is not None:  # a kernel's packets, whatever its clock
        notes.append(
            "The paper simulated NewReno in ns-3 for 120 s; here a Linux kernel recovers from losses in its "
            "own way. Compare goodput; delays need not be the paper's."
        )
    elif results.settings["sim"]["profile"] == "paper":
        notes.append("The paper simulated NewReno in ns-3 for 120 s.")
    else:
        notes.append(
            "The paper simulated NewReno in ns-3 for 120 s; here hosts send as the library and Linux do "
            "(--set sim.profile=paper has the paper's sender). Delays need not be the paper's."
        )
    if results.overrides:
        changed = ", ".join(f"{key} = {value}" for key, value in results.overrides.items())
        notes.append(f"Settings were changed ({changed}), so the paper's figures are of another experiment.")
    return notes


def _repetition_notes(results: Results) -> list[str]:
    repeated = [run for run in results.runs if run.earlier_attempts]
    if not repeated:
        return []
    attempts = sum(len(run.earlier_attempts) for run in repeated)
    runs = "1 run was" if len(repeated) == 1 else f"{len(repeated)} runs were"
    tried = "1 attempt was" if attempts == 1 else f"{attempts} attempts were"
    return [f"{runs} rerun after {tried} not valid; the results file says why."]


def validity_sentences(results: Results) -> list[str]:
    """Return a sentence for each reason not to trust the results, the document's own first."""
    # Engines repeat the runs' reasons for the document; each is said once, with its run.
    of_runs = [reason for run in results.runs for reason in run.why_invalid]
    own = [why for why in results.environment.why if not any(reason in why for reason in of_runs)]
    reasons = [f"The results are not valid: {why.rstrip('.')}." for why in own]
    if not results.environment.valid and not results.environment.why:
        reasons = ["The results are not valid; no reason is recorded."]
    for run in results.runs:
        why = run_problems(run)
        if why:
            reasons.append(f"{run_name(run)} is not valid: {'; '.join(why)}.")
    return reasons


def environment_sentences(results: Results) -> list[str]:
    """Return a sentence for each environment but the first: how many runs were made in it, what differs."""
    first = results.environment.model_dump(exclude={"host_load", "simulations", "valid", "why"})
    sentences = []
    for number, other in enumerate(results.other_environments, start=1):
        count = sum(run.environment == number for run in results.runs)
        runs = f"{count} of {len(results.runs)} runs {'was' if count == 1 else 'were'} made"
        there = other.model_dump(include=set(first))
        differing = [
            f"{name} {there[name]} instead of {value}"
            for name, value in first.items()
            if there[name] != value
        ]
        sentences.append(f"{runs} with {'; '.join(differing)}.")
    return sentences


def run_name(run: RunResult) -> str:
    """Return a run's name as people write it."""
    return f"{run.protocol}, case {run.case}, seed {run.seed}"


def run_problems(run: RunResult) -> list[str]:
    """Return why a run cannot be trusted: its own reasons and bytes that arrived wrong; empty if it can."""
    problems = list(run.why_invalid)
    if not run.valid and not problems:
        problems.append("no reason is recorded")
    problems += [
        f"{flow.bytes_wrong} bytes of flow {flow.flow} arrived wrong"
        for flow in run.flows
        if flow.bytes_wrong
    ]
    return problems


def _row_note(flow: FlowSummary) -> str | None:
    left_out = flow.runs_total - len(flow.runs)
    notes = []
    if not flow.valid:
        notes.append("no run was valid; the figures are of invalid runs")
    elif left_out:
        notes.append(f"{left_out} of {flow.runs_total} runs not valid and left out")
    if flow.runs_alike:
        notes.append(f"all {len(flow.runs)} runs are alike: the seed changes nothing here, so n = 1")
    protocol = PROTOCOLS.get(flow.protocol)
    if protocol is not None and protocol.set_apart:
        notes.append(protocol.set_apart)
    return "; ".join(notes) or None


def _request_note(flow: FlowSummary) -> str | None:
    paper = flow.paper
    if paper is None or abs(flow.requested_bps / paper.requested_bps - 1) <= REQUEST_TOLERANCE:
        return None
    return f"the paper asked for {units.mbps(paper.requested_bps)} Mbit/s"


def _allocation_note(flow: FlowSummary) -> str | None:
    if flow.allocation_varies:
        return f"differs between seeds; shown is seed {flow.runs[0].seed}"
    if not flow.allocated:
        return "the protocol chooses its paths by itself"
    if any(entry.rate_bps is None for entry in flow.allocated):
        return "the protocol allocates no rate to a path"
    return None


def _letters(index: int) -> str:
    text = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        text = chr(ord("a") + letter) + text
    return text
