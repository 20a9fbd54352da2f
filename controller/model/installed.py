"""What a switch has, and what of that is not to be compared with what it should have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controller.model.counters import RuleCount
from controller.model.rules import Group, Meter, Rule, RuleKey, flow_number, is_flow_cookie


@dataclass(frozen=True)
class Installed:
    """What a switch says it has.

    Attributes:
        rules: Those that could be ours.
        groups: Those that could be ours.
        foreign_cookies: Cookies of rules that no controller of this version would install.
        foreign_groups: Numbers of such groups.
        meters: None: it can have none.
        counts: What has matched its rules, as far as that was read.
    """

    rules: tuple[Rule, ...] = ()
    groups: tuple[Group, ...] = ()
    foreign_cookies: frozenset[int] = frozenset()
    foreign_groups: frozenset[int] = frozenset()
    meters: tuple[Meter, ...] | None = None
    counts: Mapping[RuleKey, RuleCount] = field(default_factory=dict, compare=False)


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
