"""The rules and groups of a model switch, with OpenFlow 1.3's semantics."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from switch.model.openflow import (
    ALL_GROUPS,
    ALL_TABLES,
    Action,
    Bucket,
    Count,
    ErrorReason,
    FlowMod,
    GroupMod,
    GroupType,
    Instructions,
    MatchFields,
    parse_instructions,
)

__all__ = ["Refused", "StoredRule", "Tables"]

_ADD, _MODIFY, _MODIFY_STRICT, _DELETE, _DELETE_STRICT = range(5)
_ALL_BITS = 2**64 - 1
_NO_ADDRESS = bytes(6)
_Key = tuple[int, int, MatchFields]


class Refused(Exception):
    """A change that the switch answers with an error; carries `reason`."""

    def __init__(self, reason: ErrorReason) -> None:
        super().__init__(reason.name)
        self.reason = reason


@dataclass(frozen=True)
class StoredRule:
    """A rule, and the number of the change that installed it: one that is sent again has a new number."""

    change: FlowMod
    installed_by: int
    count: Count = field(default_factory=Count)

    def instructions(self) -> Instructions:
        """Read what it does."""
        return parse_instructions(self.change.instruction_bytes)


class Tables:
    """All tables and groups of one switch.

    Args:
        max_rules: More are refused with `TABLE_FULL`.
        max_groups: The same for groups.
    """

    def __init__(self, max_rules: int = 1 << 20, max_groups: int = 1 << 16) -> None:
        self.max_rules = max_rules
        self.max_groups = max_groups
        self.groups: dict[int, GroupMod] = {}
        self.changes = 0
        self._rules: dict[_Key, StoredRule] = {}
        self._by_cookie: dict[int, set[_Key]] = {}

    def __len__(self) -> int:
        return len(self._rules)

    def rules(self, cookie: int = 0, mask: int = 0) -> Iterator[StoredRule]:
        """Yield the rules whose cookies have these bits where the mask has."""
        if mask == _ALL_BITS:
            keys = self._by_cookie.get(cookie, ())
            return iter([self._rules[key] for key in keys])
        wanted = cookie & mask
        return iter([rule for rule in self._rules.values() if rule.change.cookie & mask == wanted])

    def clear(self) -> None:
        """Lose everything, as a switch that starts again."""
        self._rules.clear()
        self._by_cookie.clear()
        self.groups.clear()

    def change_rules(self, change: FlowMod) -> None:
        """Apply a flow mod.

        Raises:
            Refused: the switch answers with an error and keeps what it has.
        """
        self.changes += 1
        if change.command == _ADD:
            self._add(change)
        elif change.command in (_DELETE, _DELETE_STRICT):
            self._delete(change)
        else:
            for key in list(self._selected(change, strict=change.command == _MODIFY_STRICT)):
                self._put(key, change)

    def _add(self, change: FlowMod) -> None:
        if change.table == ALL_TABLES:
            raise Refused(ErrorReason.BAD_TABLE)
        key = (change.table, change.priority, change.match)
        if key not in self._rules and len(self._rules) >= self.max_rules:
            raise Refused(ErrorReason.TABLE_FULL)
        for action in parse_instructions(change.instruction_bytes).actions:
            if action.group is not None and action.group not in self.groups:
                raise Refused(ErrorReason.BAD_OUT_GROUP)
        self._put(key, change)

    def _put(self, key: _Key, change: FlowMod) -> None:
        self._forget(key)
        self._rules[key] = StoredRule(change, self.changes)
        self._by_cookie.setdefault(change.cookie, set()).add(key)

    def _forget(self, key: _Key) -> None:
        rule = self._rules.pop(key, None)
        if rule is not None:
            keys = self._by_cookie[rule.change.cookie]
            keys.discard(key)
            if not keys:
                del self._by_cookie[rule.change.cookie]

    def _delete(self, change: FlowMod) -> None:
        for key in list(self._selected(change, strict=change.command == _DELETE_STRICT)):
            self._forget(key)

    def _selected(self, change: FlowMod, strict: bool) -> Iterator[_Key]:
        if change.cookie_mask == _ALL_BITS:
            candidates: Collection[_Key] = self._by_cookie.get(change.cookie, set())
        else:
            candidates = self._rules
        wanted = set(change.match)
        for key in candidates:
            table, priority, match = key
            if change.table not in (ALL_TABLES, table):
                continue
            if (self._rules[key].change.cookie ^ change.cookie) & change.cookie_mask:
                continue
            if strict:
                if (priority, match) == (change.priority, change.match):
                    yield key
            elif wanted <= set(match):
                yield key

    def change_group(self, change: GroupMod) -> None:
        """Apply a group mod.

        Raises:
            Refused: the switch answers with an error and keeps what it has.
        """
        self.changes += 1
        if change.command == 2:
            self._delete_groups(change.number)
            return
        present = change.number in self.groups
        if change.command == 0 and present:
            raise Refused(ErrorReason.GROUP_EXISTS)
        if change.command == 1 and not present:
            raise Refused(ErrorReason.UNKNOWN_GROUP)
        if not present and len(self.groups) >= self.max_groups:
            raise Refused(ErrorReason.OUT_OF_GROUPS)
        self.groups[change.number] = change

    def _delete_groups(self, number: int) -> None:
        gone = set(self.groups) if number == ALL_GROUPS else {number} & set(self.groups)
        for each in gone:
            del self.groups[each]
        for key, rule in list(self._rules.items()) if gone else ():
            if any(action.group in gone for action in rule.instructions().actions):
                self._forget(key)

    def delete_metered(self, meter: int) -> None:
        """Remove the rules that use a meter which is removed."""
        for key in [key for key, rule in self._rules.items() if rule.instructions().meter == meter]:
            self._forget(key)

    def forward(
        self,
        packet: Mapping[int, bytes],
        down: Collection[int] = (),
        packets: int = 0,
        size_bytes: int = 0,
    ) -> tuple[int | None, dict[int, bytes]]:
        """Return the port out of which a packet goes (None: dropped), and its fields as it leaves.

        Args:
            packet: Values by OXM field number.
            down: Ports that are down; a fast-failover group passes them over.
            packets: Its rules count this many of it.
            size_bytes: Of each.
        """
        fields, table = dict(packet), 0
        while True:
            rule = self._best(table, fields)
            if rule is None:
                return None, fields
            rule.count.add(packets, size_bytes)
            instructions = rule.instructions()
            for action in instructions.actions:
                port = self._apply(action, fields, down)
                if port is not None:
                    return port, fields
            if instructions.goto_table is None:
                return None, fields
            table = instructions.goto_table

    def _apply(self, action: Action, fields: dict[int, bytes], down: Collection[int]) -> int | None:
        """Do what an action says; returns the port where it sends the packet."""
        if action.set_field is not None:
            fields[action.set_field[0]] = action.set_field[1]
        elif action.move is not None:
            move = action.move
            bits = int.from_bytes(fields.get(move.source, _NO_ADDRESS), "big") >> move.source_bit
            _set_bits(fields, move.target, move.target_bit, move.bits, bits)
        elif action.load is not None:
            load = action.load
            _set_bits(fields, load.target, load.target_bit, load.bits, load.value)
        elif action.group is not None:
            bucket = _chosen(self.groups[action.group], fields, down)
            for each in bucket.actions if bucket is not None else ():
                port = self._apply(each, fields, down)
                if port is not None:
                    return port
        return action.port

    def _best(self, table: int, fields: Mapping[int, bytes]) -> StoredRule | None:
        best: tuple[int, StoredRule] | None = None
        for (rule_table, priority, match), rule in self._rules.items():
            if rule_table != table or (best is not None and priority <= best[0]):
                continue
            if all(_fits(fields.get(field), value) for field, value in match):
                best = priority, rule
        return None if best is None else best[1]


def _fits(actual: bytes | None, wanted: bytes) -> bool:
    """Return whether a field is as a match wants it, behind whose value a mask may stand."""
    if actual is None or len(wanted) == len(actual):
        return actual == wanted
    value, mask = wanted[: len(actual)], wanted[len(actual) :]
    return all(a & m == v for a, v, m in zip(actual, value, mask, strict=True))


def _set_bits(fields: dict[int, bytes], field: int, lowest: int, bits: int, value: int) -> None:
    before = fields.get(field, _NO_ADDRESS)
    mask = (1 << bits) - 1
    changed = int.from_bytes(before, "big") & ~(mask << lowest) | (value & mask) << lowest
    fields[field] = changed.to_bytes(len(before), "big")


def _chosen(group: GroupMod, fields: Mapping[int, bytes], down: Collection[int]) -> Bucket | None:
    buckets = group.buckets()
    if group.type == GroupType.FAST_FAILOVER:
        return next((bucket for bucket in buckets if bucket.watch_port not in down), None)
    total = sum(bucket.weight for bucket in buckets)
    if total == 0:
        return None
    digest = hashlib.sha256(repr(sorted(fields.items())).encode()).digest()
    point = int.from_bytes(digest[:4], "big") % total
    for bucket in buckets:
        point -= bucket.weight
        if point < 0:
            return bucket
    return None
