"""What became of the network during runs, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.model.results import LinkChange, PathChange, RunResult
from experiments.report import units

_SHOWN = {
    "rate_bps": lambda value: f"rate {units.mbps(value)} Mbit/s",
    "delay_us": lambda value: f"delay {value / 1e3:g} ms",
    "jitter_us": lambda value: f"jitter {value / 1e3:g} ms",
    "loss": lambda value: f"loss {value * 100:g} %",
    "queue_packets": lambda value: f"queue {value:g} packets",
    "queue_bytes": lambda value: f"queue {value:g} bytes",
}


@dataclass(frozen=True)
class ChangeRow:
    """A change with its time from the start of the measurement: `what` it is of, and what it `became`."""

    time_s: float
    what: str
    became: str


def change_rows(run: RunResult) -> list[ChangeRow]:
    """Return the changes of links and, behind those of the same time, of paths, in the order of time."""
    links = [ChangeRow(change.time_s, f"link {change.link}", _link(change)) for change in run.link_changes]
    paths = [ChangeRow(change.time_s, f"flow {change.flow}", _paths(change)) for change in run.path_changes]
    return sorted([*links, *paths], key=lambda row: row.time_s)


def change_sentences(runs: Iterable[RunResult]) -> list[str]:
    """Return a sentence if the network was changed during some of the runs."""
    changed = [run for run in runs if run.link_changes]
    if not changed:
        return []
    links = dict.fromkeys(change.link for run in changed for change in run.link_changes)
    count = "1 run" if len(changed) == 1 else f"{len(changed)} runs"
    return [
        f"Links were changed during {count} ({', '.join(links)}): paths, allocations and capacities are "
        "shown as before the first change; the results file has each change and the paths after it."
    ]


def _link(change: LinkChange) -> str:
    parts = []
    if change.up is not None:
        parts.append("up" if change.up else "down, with carrier" if change.silent else "down")
    for name, value in change.settings.items():
        parts.append(
            f"no {name}" if value is None else _SHOWN[name](value) if name in _SHOWN else f"{name} {value:g}"
        )
    return ", ".join(parts)


def _paths(change: PathChange) -> str:
    shown = []
    for entry in change.paths:
        rate = "" if entry.rate_bps is None else f" {units.mbps(entry.rate_bps)} Mbit/s"
        shown.append(f"{'→'.join(entry.path)}{rate}")
    return "; ".join(shown)
