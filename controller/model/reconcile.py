"""From what a switch has to what it should have, without touching what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from controller.model.rules import (
    Entry,
    Group,
    GroupChange,
    Meter,
    MeterChange,
    Rule,
    flow_number,
    is_flow_cookie,
    is_flow_meter,
)


@dataclass(frozen=True)
class Installed:
    """What a switch says it has.

    Attributes:
        rules: Those that could be ours.
        groups: Those that could be ours.
        foreign_cookies: Cookies of rules that no controller of this version would install.
        foreign_groups: Numbers of such groups.
        meters: None: it can have none.
    """

    rules: tuple[Rule, ...] = ()
    groups: tuple[Group, ...] = ()
    foreign_cookies: frozenset[int] = frozenset()
    foreign_groups: frozenset[int] = frozenset()
    meters: tuple[Meter, ...] | None = None


@dataclass(frozen=True)
class Difference:
    """What is to be done, in this order.

    Attributes:
        removed_first: Cookies whose rules are removed first: those that conflict with `entries`.
        removed_groups_first: The same for groups.
        entries: What is missing or different; groups and meters before rules. Other meters of ports stay.
        removed_rules: Rules that go while others of the same cookie stay.
        removed_cookies: Cookies all of whose rules go.
        removed_groups: Groups that go, when no rule leads to them any more.
        removed_meters: The same of flows' meters.
    """

    removed_first: tuple[int, ...]
    removed_groups_first: tuple[int, ...]
    entries: tuple[Entry, ...]
    removed_rules: tuple[Rule, ...]
    removed_cookies: tuple[int, ...]
    removed_groups: tuple[int, ...]
    removed_meters: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not any(vars(self).values())


@dataclass(frozen=True)
class Unsettled:
    """What must not be compared: flows whose rules are on their way, by number, and their groups."""

    flows: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()

    def has(self, entry: Rule | Group | Meter) -> bool:
        """Return whether an entry is not to be compared."""
        if isinstance(entry, Rule):
            return is_flow_cookie(entry.cookie) and flow_number(entry.cookie) in self.flows
        return isinstance(entry, Group) and entry.number in self.groups

    def without(self, installed: Installed) -> Installed:
        """Return what is left of what a switch has."""
        return replace(
            installed,
            rules=tuple(rule for rule in installed.rules if not self.has(rule)),
            groups=tuple(group for group in installed.groups if not self.has(group)),
        )


def difference(installed: Installed, desired: Sequence[Rule | Group | Meter]) -> Difference:
    """Return how a switch gets from what it has to what it should have.

    A rule that is right is not sent again, so its counters go on and no packet notices.
    """
    foreign_rules, foreign_groups = installed.foreign_cookies, installed.foreign_groups
    present = {rule.key: rule for rule in installed.rules if rule.cookie not in foreign_rules}
    groups = {group.number: group for group in installed.groups}
    rules = {entry.key: entry for entry in desired if isinstance(entry, Rule)}
    wanted_groups = {entry.number: entry for entry in desired if isinstance(entry, Group)}
    cookies = {rule.cookie for rule in rules.values()}
    extra = [rule for key, rule in present.items() if key not in rules]
    present_meters = {meter.number for meter in installed.meters or ()}
    wanted_meters = {entry.number for entry in desired if isinstance(entry, Meter)}
    return Difference(
        removed_first=tuple(sorted(foreign_rules)),
        removed_groups_first=tuple(sorted(foreign_groups)),
        entries=(
            *_group_entries(groups, wanted_groups),
            *_meter_entries(installed.meters or (), desired),
            *(rule for key, rule in rules.items() if present.get(key) != rule),
        ),
        removed_rules=tuple(rule for rule in extra if rule.cookie in cookies),
        removed_cookies=tuple(sorted({rule.cookie for rule in extra} - cookies)),
        removed_groups=tuple(sorted(groups.keys() - wanted_groups.keys())),
        removed_meters=tuple(sorted(filter(is_flow_meter, present_meters - wanted_meters))),
    )


def _group_entries(present: dict[int, Group], wanted: dict[int, Group]) -> list[Entry]:
    return [
        GroupChange(group) if number in present else group
        for number, group in wanted.items()
        if present.get(number) != group
    ]


def _meter_entries(present: Sequence[Meter], desired: Sequence[Rule | Group | Meter]) -> list[Entry]:
    numbers = {meter.number for meter in present}
    return [
        MeterChange(entry) if entry.number in numbers else entry
        for entry in desired
        if isinstance(entry, Meter) and entry not in present
    ]
