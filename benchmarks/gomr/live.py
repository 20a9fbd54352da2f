"""Live events beside fresh solves of the same problem, end to end: what an event costs at worst.

Each event's CPU time (of the whole process) is held against that of `solve` for the problem as it is then.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gomr.networks import SEED, Loaded, Size, load
from experiments.routing.events import links_of
from gomr import Engine
from gomr.demands import poisson_events
from gomr.solving import allocate

MAX_TIMES_FRESH = 1.2
OBJECTIVES = ("max_throughput_min_delay", "max_min", "fair", "min_max_utilisation", "even_split")
MIN_REALLOCATION = "minimum reallocation"
"""`max_throughput_min_delay` with `min_reallocation`."""
SMALL = Size("geometric:50", 200)
_REPEATS = 3


@dataclass(frozen=True)
class Series:
    """Events of one kind on one network, CPU times in ms.

    Attributes:
        network: Name and number of flows.
        objective: Its name, or `MIN_REALLOCATION`.
        kind: `flows` or `links`.
        event_ms: Of each event.
        fresh_ms: Of a fresh solve of the problem after the event.
    """

    network: str
    objective: str
    kind: str
    event_ms: tuple[float, ...]
    fresh_ms: tuple[float, ...]

    @property
    def worst_times(self) -> float:
        """The most that an event took, in its fresh solve's time."""
        return max(event / fresh for event, fresh in zip(self.event_ms, self.fresh_ms, strict=True))


Event = Callable[[Engine], object]


def measure(size: Size, objective: str, events: int, failures: int) -> list[Series]:
    """Let flows come and go and links fail and return, one by one."""
    loaded = load(size)
    min_reallocation = objective == MIN_REALLOCATION
    name = OBJECTIVES[0] if min_reallocation else objective
    live = Engine(loaded.problem, objective=name, min_reallocation=min_reallocation)
    _ = live.allocation
    series = []
    for kind, every in (("flows", _flows(loaded, events)), ("links", _links(loaded, failures))):
        event_ms, fresh_ms = [], []
        for event in every:
            event_ms.append(_cpu_ms(lambda event=event: event(live)))  # type: ignore[misc]
            fresh = (_cpu_ms(lambda: allocate(live.problem, name)) for _ in range(_REPEATS))
            fresh_ms.append(statistics.median(fresh))
        network = f"{size.name}, {size.flows} flows"
        series.append(Series(network, objective, kind, tuple(event_ms), tuple(fresh_ms)))
    return series


def _flows(loaded: Loaded, count: int) -> Iterator[Event]:
    poisson = poisson_events(loaded.problem.demands, loaded.arriving, random.Random(SEED))
    for event in itertools.islice(poisson, count):
        if event.arrives:
            yield lambda live, event=event: live.add_flow(event.demand)  # type: ignore[misc]
        else:
            yield lambda live, event=event: live.remove_flow(event.demand.id)  # type: ignore[misc]


def _links(loaded: Loaded, count: int) -> Iterator[Event]:
    links = links_of(loaded.problem)
    for link in random.Random(SEED).sample(links, min(count, len(links))):
        yield lambda live, link=link: live.fail_link(link)  # type: ignore[misc]
        yield lambda live, link=link: live.restore_link(link)  # type: ignore[misc]


def _cpu_ms(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return (time.process_time() - started) * 1e3


def table(series: Sequence[Series]) -> str:
    """Return a line for each series."""
    lines = [
        "| network | objective | events | median | worst | fresh solve | worst in its fresh solve's time |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.network} | {one.objective} | {len(one.event_ms)} {one.kind} "
        f"| {statistics.median(one.event_ms):.3g} ms | {max(one.event_ms):.3g} ms "
        f"| {statistics.median(one.fresh_ms):.3g} ms | {one.worst_times:.2f} |"
        for one in series
    ]
    return "\n".join(lines) + "\n"


def main(sizes: Sequence[Size], events: int, failures: int, out: Path) -> int:
    """Measure every objective on these networks and write the table; returns 1 if an event costs too much."""
    series: list[Series] = []
    for size in sizes:
        for objective in (*OBJECTIVES, MIN_REALLOCATION):
            series += measure(size, objective, events, failures)
            for one in series[-2:]:
                times = f"worst {one.worst_times:.2f} times a fresh solve"
                print(f"{one.network}, {objective}, {one.kind}: {times}", file=sys.stderr, flush=True)
    text = table(series)
    out.mkdir(parents=True, exist_ok=True)
    (out / "live.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if all(one.worst_times <= MAX_TIMES_FRESH for one in series) else 1
