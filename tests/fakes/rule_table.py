"""The rules of one OpenFlow switch in memory: where does a packet go?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from controller.model.installed import Installed
from controller.model.labels import LABEL_BITS, format_mac, mac_value
from controller.model.messages import DatapathMessage, RemoveGroup, RemoveMeter, RemoveRule, RemoveRules
from controller.model.rules import (
    TABLE_CLASSIFY,
    Bucket,
    Drop,
    Entry,
    GotoTable,
    Group,
    GroupChange,
    Match,
    Meter,
    MeterChange,
    Output,
    RestoreLabel,
    Rule,
    ToController,
    ToGroup,
    ToTables,
    Untag,
)

CONTROLLER = "controller"
DROPPED = "dropped"

_Packet = TypeVar("_Packet", bound=Match)
"""What rules may look at, of a packet: each field has a value."""


class FakeTable:
    """The rules and groups of one switch, with OpenFlow 1.3's semantics.

    The same table, priority and match replaces a rule. A group is added once, changed while it is there, and
    takes the rules that lead to it along when it goes.
    """

    def __init__(self) -> None:
        self.rules: dict[tuple[int, int, Match], Rule] = {}
        self.groups: dict[int, Group] = {}
        self.meters: dict[int, Meter] = {}
        self.has_meters = False  # and says so
        self.down: set[int] = set()  # ports

    def install(self, entry: Entry) -> None:
        """Add or replace a rule, add or change a group."""
        if isinstance(entry, Group):
            assert entry.number not in self.groups, "OFPGMFC_GROUP_EXISTS"
            self._put_group(entry)
        elif isinstance(entry, GroupChange):
            assert entry.group.number in self.groups, "OFPGMFC_UNKNOWN_GROUP"
            self._put_group(entry.group)
        elif isinstance(entry, Meter | MeterChange):
            meter = entry if isinstance(entry, Meter) else entry.meter
            assert (meter.number in self.meters) == isinstance(entry, MeterChange), "OFPMMFC"
            self.meters[meter.number] = meter
        else:
            assert entry.meter is None or entry.meter in self.meters, "OFPMMFC_UNKNOWN_METER"
            if isinstance(entry.action, ToGroup):
                assert entry.action.group in self.groups, "OFPBAC_BAD_OUT_GROUP"
            self.rules[entry.table, entry.priority, entry.match] = entry

    def _put_group(self, group: Group) -> None:
        assert group.is_failover or sum(bucket.weight for bucket in group.buckets) > 0
        assert all(0 <= bucket.weight < 1 << 16 for bucket in group.buckets)
        self.groups[group.number] = group

    def take_away(self, message: DatapathMessage) -> None:
        """Remove what a message names."""
        if isinstance(message, RemoveRules):
            self.remove(message.cookie)
        elif isinstance(message, RemoveRule):
            self.rules.pop(message.rule.key, None)
        elif isinstance(message, RemoveMeter):
            self.remove_meter(message.meter)
        else:
            assert isinstance(message, RemoveGroup)
            self.remove_group(message.group)

    def remove(self, cookie: int) -> None:
        """Remove all rules with a cookie."""
        self.rules = {key: rule for key, rule in self.rules.items() if rule.cookie != cookie}

    def remove_group(self, number: int) -> None:
        """Remove a group and the rules that lead to it; it need not be there."""
        self.groups.pop(number, None)
        leading = [key for key, rule in self.rules.items() if getattr(rule.action, "group", None) == number]
        for key in leading:
            del self.rules[key]

    def remove_meter(self, number: int) -> None:
        """Remove a meter and the rules that use it."""
        self.meters.pop(number, None)
        self.rules = {key: rule for key, rule in self.rules.items() if rule.meter != number}

    def select_groups(self) -> dict[int, Group]:
        """Return the groups, by number, but those that guard ports."""
        return {number: group for number, group in self.groups.items() if not group.is_failover}

    def clear(self) -> None:
        """Remove everything."""
        self.rules.clear()
        self.groups.clear()

    def installed(self) -> Installed:
        """Return everything as a switch says it."""
        meters = tuple(self.meters.values()) if self.has_meters else None
        return Installed(tuple(self.rules.values()), tuple(self.groups.values()), meters=meters)

    def apply(self, packet: _Packet) -> int | str:
        """Return the port out of which a packet goes, CONTROLLER or DROPPED."""
        return self.forward(packet)[0]

    def forward(self, packet: _Packet) -> tuple[int | str, _Packet]:
        """Return where a packet goes, as `apply`, and the packet as it leaves."""
        *_, (_, target, packet) = self.steps(packet)
        return target, packet

    def steps(self, packet: _Packet) -> Iterator[tuple[Rule | None, int | str, _Packet]]:
        """Yield each rule that a packet meets, with what `forward` returns once it was the last."""
        table = TABLE_CLASSIFY
        while True:
            rule = self._best(table, packet)
            if rule is None:
                yield None, DROPPED, packet
                return
            if isinstance(rule.action, GotoTable | RestoreLabel | ToTables):
                assert rule.action.table > table, "OpenFlow goes forward only"
                table = rule.action.table
                if isinstance(rule.action, RestoreLabel):
                    restored, source = packet.source_mac, rule.action.source_mac
                    packet = replace(packet, source_mac=source, destination_mac=restored, in_port=0)
                yield rule, DROPPED, packet
            elif isinstance(rule.action, Untag):
                table, packet = rule.action.table, replace(packet, tag=None, untagged=1)
                yield rule, DROPPED, packet
            elif isinstance(rule.action, ToController | Drop):
                yield rule, DROPPED if isinstance(rule.action, Drop) else CONTROLLER, packet
                return
            else:
                yield rule, *self._send(rule.action, packet)
                return

    def _send(self, action: Output | ToGroup, packet: _Packet) -> tuple[int | str, _Packet]:
        if isinstance(action, Output) and action.saves_label:
            packet = replace(packet, source_mac=packet.destination_mac)
        if action.shift:
            packet = replace(packet, destination_mac=_shifted(packet.destination_mac, action.shift))
        if action.source_mac is not None:
            packet = replace(packet, source_mac=action.source_mac)
        if action.destination_mac is not None:
            packet = replace(packet, destination_mac=action.destination_mac)
        if isinstance(action, Output):
            packet = replace(packet, tag=action.tag, untagged=0)
        if isinstance(action, ToGroup):
            bucket = self._bucket(self.groups[action.group], packet)
            return (DROPPED, packet) if bucket is None else self._send(bucket.output, packet)
        if action.port in self.down or (action.port == packet.in_port and not action.may_return):
            return DROPPED, packet
        return action.port, packet

    def _bucket(self, group: Group, packet: _Packet) -> Bucket | None:
        """Choose the first whose port is up (fast failover), or by a hash of the connection.

        The hash is the same in every switch, as Open vSwitch's is.
        """
        if group.is_failover:
            return next((bucket for bucket in group.buckets if bucket.watch_port not in self.down), None)
        connection = repr(replace(packet, source_mac=None, destination_mac=None, in_port=None))
        digest = int.from_bytes(hashlib.sha256(connection.encode()).digest()[:4], "big")
        point = digest % sum(bucket.weight for bucket in group.buckets)
        for bucket in group.buckets:
            point -= bucket.weight
            if point < 0:
                return bucket
        raise AssertionError("unreachable")

    def _best(self, table: int, packet: _Packet) -> Rule | None:
        fields = vars(packet)
        matching = [
            rule
            for rule in self.rules.values()
            if rule.table == table
            and all(_fits(fields[name], value) for name, value in rule.match.fields().items())
        ]
        best = max(matching, key=lambda rule: rule.priority, default=None)
        if best is not None:
            rivals = [rule for rule in matching if rule.priority == best.priority]
            assert len(rivals) == 1, f"OpenFlow leaves it open which of {rivals} applies"
        return best


def _fits(actual: int | str | None, wanted: int | str) -> bool:
    """Return whether a packet's field is what a match asks for, which may have a mask."""
    if actual is None or isinstance(wanted, int) or "/" not in wanted:
        return actual == wanted
    value, mask = map(mac_value, wanted.split("/"))
    return mac_value(str(actual)) & mask == value


def _shifted(label: str | None, bits: int) -> str:
    assert label is not None
    value = mac_value(label)
    fields = value << bits & (1 << LABEL_BITS) - 1
    return format_mac(value >> LABEL_BITS << LABEL_BITS | fields)
