"""From what a switch has to what it should have, without touching what is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from controller.model.installed import Installed
from controller.model.messages import DatapathMessage, RemoveGroup, RemoveMeter, RemoveRule, RemoveRules
from controller.model.rules import Entry, Group, GroupChange, Meter, MeterChange, Rule, is_flow_meter


class RuleDifference(NamedTuple):
    """What is to be done, in this order.

    Attributes:
        first: Removes what conflicts with `entries`.
        entries: What is missing or different; groups and meters before rules. Other meters of ports stay.
        then: Removes what is too much; groups and meters when no rule leads to them any more.
    """

    first: tuple[DatapathMessage, ...]
    entries: tuple[Entry, ...]
    then: tuple[DatapathMessage, ...]


def rule_difference(
    datapath_id: int, installed: Installed, desired: Sequence[Rule | Group | Meter]
) -> RuleDifference:
    """Return how a switch gets from what it has to what it should have.

    A rule that is right is not sent again, so its counters go on and no packet notices.
    """
    foreign_rules, foreign_groups = installed.foreign_cookies, installed.foreign_groups
    present = {rule.key: rule for rule in installed.rules if rule.cookie not in foreign_rules}
    groups = {group.number: group for group in installed.groups}
    meters = {meter.number: meter for meter in installed.meters or ()}
    rules = {entry.key: entry for entry in desired if isinstance(entry, Rule)}
    wanted_groups = {entry.number: entry for entry in desired if isinstance(entry, Group)}
    wanted_meters = {entry.number: entry for entry in desired if isinstance(entry, Meter)}
    cookies = {rule.cookie for rule in rules.values()}
    extra = [rule for key, rule in present.items() if key not in rules]
    return RuleDifference(
        (
            *(RemoveRules(datapath_id, cookie) for cookie in sorted(foreign_rules)),
            *(RemoveGroup(datapath_id, number) for number in sorted(foreign_groups)),
        ),
        (
            *(
                GroupChange(group) if number in groups else group
                for number, group in wanted_groups.items()
                if groups.get(number) != group
            ),
            *(
                MeterChange(meter) if number in meters else meter
                for number, meter in wanted_meters.items()
                if meters.get(number) != meter
            ),
            *(rule for key, rule in rules.items() if present.get(key) != rule),
        ),
        (
            *(RemoveRule(datapath_id, rule) for rule in extra if rule.cookie in cookies),
            *(RemoveRules(datapath_id, each) for each in sorted({rule.cookie for rule in extra} - cookies)),
            *(RemoveGroup(datapath_id, number) for number in sorted(groups.keys() - wanted_groups.keys())),
            *(
                RemoveMeter(datapath_id, number)
                for number in sorted(filter(is_flow_meter, meters.keys() - wanted_meters.keys()))
            ),
        ),
    )
