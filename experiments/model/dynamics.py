"""What happens to the network during a run: `[[events]]` and `[[traces]]` of a scenario, for a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, model_validator

from experiments.model.data import Data
from experiments.model.settings import Seconds
from experiments.traces import LinkSettings, Trace
from experiments.traces.base import SETTINGS
from topologies.model import Link, Network

MAX_STEPS = 100_000
"""Steps of a link's trace in a run at most."""


@dataclass(frozen=True)
class NetworkChange:
    """A change of one link, both directions, at a time from the start of the measurement."""

    time_s: float
    link: str
    up: bool | None = None
    """Down or up; None leaves it."""
    silent: bool = False
    """Down without the ends' carriers, so that only missing packets tell."""
    settings: dict[str, float | int | None] = field(default_factory=dict)
    """New values of `SETTINGS`."""


class Event(LinkSettings):
    """One event: a link goes down or up or changes, or a host is away.

    It is at `at_s` from the start of the measurement, or at a time that the run's seed draws from
    `between_s`. With `for_s` it is undone that much later. `link` names a link by its ends, in either order;
    `host` stands for all links of a host. Without `cases` it is for all cases.
    """

    at_s: Seconds | None = None
    between_s: tuple[Seconds, Seconds] | None = None
    for_s: Annotated[float, Field(gt=0, le=86400)] | None = None
    link: str | None = None
    host: str | None = None
    up: bool | None = None
    silent: bool = False
    cases: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_one_event(self) -> Event:
        if (self.at_s is None) == (self.between_s is None):
            raise ValueError("an event has a time: at_s, or between_s = [from, to]")
        if self.between_s is not None and self.between_s[0] > self.between_s[1]:
            raise ValueError("between_s begins before it ends")
        if (self.link is None) == (self.host is None):
            raise ValueError("an event is of a link or of a host")
        if self.up is None and not self.settings:
            raise ValueError(f"an event changes something: up, {', '.join(SETTINGS)}")
        if self.silent and self.up is not False:
            raise ValueError("silent goes with up = false")
        return self

    def links(self, network: Network) -> list[Link]:
        """Return the links that it is of; KeyError if there is none."""
        if self.link is not None:
            return [network.link(self.link)]
        found = [link for link in network.links if self.host in link.ends]
        if not found:
            raise KeyError(self.host)
        return found


class LinkTrace(Data):
    """A link that changes as a trace says, in both directions; without `cases` in all of them."""

    link: str
    trace: Trace
    cases: tuple[str, ...] = ()

    def changes(self, network: Network, seed: int, duration_s: float) -> Iterator[NetworkChange]:
        """Yield what changes in a run."""
        name = network.link(self.link).name
        before: dict[str, Any] = {}
        for step in itertools.islice(self.trace.steps(seed), MAX_STEPS):
            if step.time_s >= duration_s:
                return
            if step.settings != before:
                yield NetworkChange(step.time_s, name, settings=dict(step.settings))
            before = step.settings


def changes_of(
    events: Sequence[Event],
    traces: Sequence[LinkTrace],
    network: Network,
    case: str,
    seed: int,
    duration_s: float,
) -> tuple[NetworkChange, ...]:
    """Return the changes of a run, in the order of time; those after its end are left out."""
    changes = [
        change
        for number, event in enumerate(events)
        if not event.cases or case in event.cases
        for change in _changes(event, network, random.Random(f"{seed} event {number}"))
        if change.time_s < duration_s
    ]
    for number, trace in enumerate(traces):
        if not trace.cases or case in trace.cases:
            changes += trace.changes(network, seed * len(traces) + number, duration_s)
    return tuple(sorted(changes, key=lambda change: change.time_s))


def _changes(event: Event, network: Network, rng: random.Random) -> Iterator[NetworkChange]:
    at_s = event.at_s if event.between_s is None else rng.uniform(*event.between_s)
    assert at_s is not None, "an event has a time"
    at_s = round(at_s, 6)
    for link in event.links(network):
        yield NetworkChange(at_s, link.name, event.up, event.silent, event.settings)
        if event.for_s is not None:
            before: dict[str, Any] = {name: getattr(link, name) for name in event.settings}
            up = None if event.up is None else not event.up
            yield NetworkChange(round(at_s + event.for_s, 6), link.name, up, False, before)
