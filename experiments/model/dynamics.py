"""What happens to the network during a run: `[[events]]` of a scenario, and what they change for a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from topologies.model import Link, Network

SETTINGS = ("rate_bps", "delay_us", "loss", "jitter_us", "queue_packets", "queue_bytes")
"""Properties of a link that an event can change."""
Time = Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]


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


class Event(BaseModel):
    """One event: a link goes down or up or changes, or a host is away.

    It is at `at_s` from the start of the measurement, or at a time that the run's seed draws from
    `between_s`. With `for_s` it is undone that much later. `link` names a link by its ends, in either order;
    `host` stands for all links of a host. Without `cases` it is for all cases.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    at_s: Time | None = None
    between_s: tuple[Time, Time] | None = None
    for_s: Annotated[float, Field(gt=0, le=86400)] | None = None
    link: str | None = None
    host: str | None = None
    up: bool | None = None
    silent: bool = False
    rate_bps: Annotated[float, Field(gt=0, le=1e13, allow_inf_nan=False)] | None = None
    delay_us: Annotated[float, Field(ge=0, le=10e6, allow_inf_nan=False)] | None = None
    loss: Annotated[float, Field(ge=0, lt=1)] | None = None
    jitter_us: Annotated[float, Field(ge=0, le=10e6, allow_inf_nan=False)] | None = None
    queue_packets: Annotated[int, Field(ge=1)] | None = None
    queue_bytes: Annotated[int, Field(ge=1)] | None = None
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

    @property
    def settings(self) -> dict[str, float | int | None]:
        """What it changes of a link."""
        return {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}

    def links(self, network: Network) -> list[Link]:
        """Return the links that it is of; KeyError if there is none."""
        if self.link is not None:
            return [network.link(self.link)]
        found = [link for link in network.links if self.host in link.ends]
        if not found:
            raise KeyError(self.host)
        return found


def changes_of(
    events: Sequence[Event], network: Network, case: str, seed: int, duration_s: float
) -> tuple[NetworkChange, ...]:
    """Return the changes that events are in a run, in the order of time; those after its end are left out."""
    changes = [
        change
        for number, event in enumerate(events)
        if not event.cases or case in event.cases
        for change in _changes(event, network, random.Random(f"{seed} event {number}"))
        if change.time_s < duration_s
    ]
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
