"""Reads rules, groups and meters back from a switch (ONF TS-012, sections 7.3.5.2, 7.3.5.10 and 7.3.5.13)."""

from __future__ import annotations

import struct
from collections.abc import Callable

from controller.model.counters import RuleCount
from controller.model.installed import Installed
from controller.model.rules import Bucket, Group, Meter, Rule, RuleKey
from controller.openflow.actions import read_instructions, read_output
from controller.openflow.decoding import Malformed, parts, read_match
from controller.openflow.encoding import DROP_BAND, FAST_FAILOVER, KILOBITS, PACKETS, SELECT, WITH_BURST
from controller.openflow.statistics import (
    FLOWS,
    GROUPS,
    METER_FEATURES,
    METERS,
    FlowStatistics,
    Reading,
    flows_request,
    read_flows,
)

_ALL_METERS = struct.pack("!I4x", 0xFFFF_FFFF)
_GROUP = struct.Struct("!2xBxI")  # type, number
_BUCKET = struct.Struct("!2xHI8x")  # weight, watched port
_METER = struct.Struct("!2xHI")  # flags, number
_BAND = struct.Struct("!H2xII")  # type, rate, burst
_FEATURES = struct.Struct("!II8x")  # how many meters, kinds of bands
_COUNTS_MEASURED = 8  # flag of a meter that says nothing of what it does


class Readback(Reading):
    """What a switch has, once it has said all of it."""

    def __init__(self, new_transaction: Callable[[], int]) -> None:
        super().__init__(new_transaction)
        self._has_failed = False
        self._has_meters = True
        self._meters: list[Meter] = []
        self._rules: list[Rule] = []
        self._counts: dict[RuleKey, RuleCount] = {}
        self._groups: list[Group] = []
        # What cannot be ours.
        self._foreign_cookies: set[int] = set()
        self._foreign_groups: set[int] = set()
        self._ask(FLOWS, flows_request(), self._take_flows)
        self._ask(GROUPS, b"", self._take_groups)
        self._optional = {  # not every switch has meters
            self._ask(METER_FEATURES, b"", self._take_features),
            self._ask(METERS, _ALL_METERS, self._take_meters),
        }

    def refused(self, transaction: int) -> bool:
        """Take that the switch does not say something; returns whether that was the last of all answers."""
        del self._open[transaction]
        if transaction in self._optional:
            self._has_meters = False
        else:
            self._has_failed = True
            self._open.clear()
        return not self._open

    def result(self) -> Installed | None:
        """Return what the switch has; what cannot be ours is named by its cookie or number. None: unknown."""
        if self._has_failed:
            return None
        return Installed(
            tuple(self._rules),
            tuple(self._groups),
            frozenset(self._foreign_cookies),
            frozenset(self._foreign_groups),
            tuple(self._meters) if self._has_meters else None,
            self._counts,
        )

    def _take_flows(self, body: bytes) -> None:
        for flow in read_flows(body):
            rule = _rule(flow)
            if rule is None:
                self._foreign_cookies.add(flow.cookie)
            else:
                self._rules.append(rule)
                self._counts[rule.key] = RuleCount(flow.packets, flow.total_bytes)

    def _take_groups(self, body: bytes) -> None:
        for start, end in parts(body, 0, len(body), 0, _GROUP.size):
            kind, number = _GROUP.unpack_from(body, start)
            buckets = [_bucket(kind, body[at:to]) for at, to in parts(body, start + _GROUP.size, end, 0, 16)]
            ours = tuple(bucket for bucket in buckets if bucket is not None)
            if kind not in (SELECT, FAST_FAILOVER) or len(ours) < len(buckets):
                self._foreign_groups.add(number)
            else:
                self._groups.append(Group(number, ours))

    def _take_features(self, body: bytes) -> None:
        if len(body) != _FEATURES.size:
            raise Malformed(f"{len(body)} bytes of what meters can do")
        most, bands = _FEATURES.unpack(body)
        self._has_meters = self._has_meters and bool(most and bands & 1 << DROP_BAND)

    def _take_meters(self, body: bytes) -> None:
        for start, end in parts(body, 0, len(body), 0, _METER.size):
            flags, number = _METER.unpack_from(body, start)
            bands = [_BAND.unpack_from(body, at) for at, _ in parts(body, start + _METER.size, end, 2, 12)]
            unit = flags & ~_COUNTS_MEASURED & ~WITH_BURST
            is_band = [band[0] for band in bands] == [DROP_BAND]
            is_ours = flags & WITH_BURST and unit in (KILOBITS, PACKETS) and is_band
            # One that is not ours has no rate, so it is no meter that is wanted.
            rate, burst = bands[0][1:] if is_ours else (0, 0)
            self._meters.append(Meter(number, rate, burst, unit == KILOBITS))


def _rule(flow: FlowStatistics) -> Rule | None:
    match, (action, meter) = read_match(flow.match), read_instructions(flow.instructions)
    if match is None or action is None or flow.hard_s:
        return None
    return Rule(flow.table, flow.priority, match, action, flow.cookie, flow.idle_s, meter)


def _bucket(kind: int, whole: bytes) -> Bucket | None:
    weight, watched = _BUCKET.unpack_from(whole)
    output = read_output(whole[_BUCKET.size :])
    if output is None:
        return None
    return Bucket(0, output, watched) if kind == FAST_FAILOVER else Bucket(weight, output)
