"""Reads rules and groups back from a switch: flow statistics and group descriptions to the core's model."""

from __future__ import annotations

from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controller.model.labels import LABEL_BITS
from controller.model.reconcile import Installed
from controller.model.rules import (
    Action,
    Bucket,
    Drop,
    GotoTable,
    Group,
    Match,
    Meter,
    Output,
    RestoreLabel,
    Rule,
    ToController,
    ToGroup,
)

_OUR_FIELDS = {
    "eth_type": "eth_type",
    "ip_proto": "ip_protocol",
    "ipv4_src": "source_ip",
    "ipv4_dst": "destination_ip",
    "ipv6_src": "source_ip",
    "ipv6_dst": "destination_ip",
    "icmpv6_type": "icmp_type",
    "tcp_src": "source_port",
    "tcp_dst": "destination_port",
    "udp_src": "source_port",
    "udp_dst": "destination_port",
    "eth_src": "source_mac",
    "eth_dst": "destination_mac",
    "in_port": "in_port",
}


class _Foreign(Exception):
    """Something that this controller would not install."""


class Readback:
    """Collects what a switch answers until it is complete.

    Attributes:
        unanswered: Transactions whose last part has not come yet.
    """

    def __init__(self) -> None:
        self.unanswered: set[int] = set()
        self._optional: set[int] = set()  # of these: for meters, which not every switch has
        self._has_failed = False
        self._meters: list[Any] | None = []
        self._rules: list[Any] = []
        self._groups: list[Any] = []

    def ask(self, transaction: int, is_optional: bool = False) -> None:
        """Expect an answer; without one that is optional, the switch has no meters."""
        self.unanswered.add(transaction)
        if is_optional:
            self._optional.add(transaction)

    def take(self, reply: Any) -> bool:
        """Take a part of an answer in; returns whether that was the last of all."""
        if reply.xid not in self.unanswered:
            return False
        if isinstance(reply, parser.OFPMeterFeaturesStatsReply):
            if not any(each.max_meter and each.band_types & 1 << ofp.OFPMBT_DROP for each in reply.body):
                self._meters = None
        elif isinstance(reply, parser.OFPMeterConfigStatsReply):
            if self._meters is not None:
                self._meters.extend(reply.body)
        else:
            is_rules = isinstance(reply, parser.OFPFlowStatsReply)
            (self._rules if is_rules else self._groups).extend(reply.body)
        if not reply.flags & ofp.OFPMPF_REPLY_MORE:
            self.unanswered.discard(reply.xid)
        return not self.unanswered

    def refused(self, transaction: int) -> bool:
        """Take that the switch does not say something; returns whether that was the last of all answers."""
        self.unanswered.discard(transaction)
        if transaction in self._optional:
            self._meters = None
        else:
            self._has_failed = True
            self.unanswered.clear()
        return not self.unanswered

    def result(self) -> Installed | None:
        """Return what the switch has; what cannot be ours is named by its cookie or number. None: unknown."""
        if self._has_failed:
            return None
        rules, groups, foreign_cookies, foreign_groups = [], [], set(), set()
        for entry in self._rules:
            try:
                rules.append(_rule(entry))
            except _Foreign:  # noqa: PERF203
                foreign_cookies.add(entry.cookie)
        for description in self._groups:
            try:
                groups.append(_group(description))
            except _Foreign:  # noqa: PERF203
                foreign_groups.add(description.group_id)
        meters = None if self._meters is None else tuple(_meter(each) for each in self._meters)
        return Installed(
            tuple(rules), tuple(groups), frozenset(foreign_cookies), frozenset(foreign_groups), meters
        )


def _meter(config: Any) -> Meter:
    """Read a meter; one that is not ours has no rate, so it is no meter that is wanted."""
    flags, bands = ofp.OFPMF_PKTPS | ofp.OFPMF_BURST, config.bands
    if config.flags & ~ofp.OFPMF_STATS != flags or len(bands) != 1 or bands[0].type != ofp.OFPMBT_DROP:
        return Meter(config.meter_id, 0, 0)
    return Meter(config.meter_id, bands[0].rate, bands[0].burst_size)


def _rule(entry: Any) -> Rule:
    if entry.hard_timeout:
        raise _Foreign
    match, action = _match(entry.match), _action(entry.instructions)
    return Rule(entry.table_id, entry.priority, match, action, entry.cookie, entry.idle_timeout)


def _match(match: Any) -> Match:
    fields: dict[str, Any] = {}
    for name, value in match.items():
        if isinstance(value, tuple):  # it has a mask
            if name != "eth_dst":
                raise _Foreign
            value = "/".join(value)
        if name not in _OUR_FIELDS:
            raise _Foreign
        fields[_OUR_FIELDS[name]] = value
    return Match(**fields)


def _action(instructions: list[Any]) -> Action:
    meters = [each for each in instructions if isinstance(each, parser.OFPInstructionMeter)]
    if meters:
        (inner,) = [each for each in instructions if each not in meters] or [None]
        if len(meters) > 1 or inner is None or _action([inner]) != ToController():
            raise _Foreign
        return ToController(meters[0].meter_id)
    if not instructions:
        return Drop()
    if len(instructions) == 2:
        return _restored(*instructions)
    if len(instructions) != 1:
        raise _Foreign
    (instruction,) = instructions
    if isinstance(instruction, parser.OFPInstructionGotoTable):
        return GotoTable(instruction.table_id)
    if not isinstance(instruction, parser.OFPInstructionActions):
        raise _Foreign
    sent = _sent(instruction.actions)
    return ToController() if sent == Output(ofp.OFPP_CONTROLLER) else sent


def _restored(apply: Any, goto: Any) -> RestoreLabel:
    """Read what ends a bypass; switches may name the table first."""
    if isinstance(apply, parser.OFPInstructionGotoTable):
        apply, goto = goto, apply
    if not isinstance(apply, parser.OFPInstructionActions) or len(apply.actions) != 3:
        raise _Foreign
    move, source, forget = apply.actions
    if not (
        isinstance(goto, parser.OFPInstructionGotoTable)
        and _moved(move) == ("eth_src", 0, "eth_dst", 0, 48)
        and isinstance(source, parser.OFPActionSetField)
        and source.key == "eth_src"
        and _forgets_port(forget)
    ):
        raise _Foreign
    return RestoreLabel(source.value, goto.table_id)


def _forgets_port(action: Any) -> bool:
    return isinstance(action, parser.NXActionRegLoad) and (action.dst, action.value) == ("in_port_nxm", 0)


def _clears(action: Any, bits: int | None) -> bool:
    """Return whether an action sets the lowest bits of a label to 0."""
    if bits is None or not isinstance(action, parser.NXActionRegLoad):
        return False
    return (action.dst.removesuffix("_nxm"), action.ofs_nbits, action.value) == ("eth_dst", bits - 1, 0)


def _moved(action: Any) -> tuple[str, int, str, int, int] | None:
    """Read which bits an action copies: from where, to where, how many."""
    if not isinstance(action, parser.NXActionRegMove):
        return None
    source, target = (name.removesuffix("_nxm") for name in (action.src_field, action.dst_field))
    return source, action.src_ofs, target, action.dst_ofs, action.n_bits


def _sent(actions: list[Any]) -> Output | ToGroup:
    """Read where a packet is sent, and what is changed in it before."""
    changes: dict[str, Any] = {}
    *earlier, last = actions or [None]
    for action in earlier:
        moved = _moved(action)
        if isinstance(action, parser.OFPActionSetField) and action.key in ("eth_src", "eth_dst"):
            changes["source_mac" if action.key == "eth_src" else "destination_mac"] = action.value
        elif moved == ("eth_dst", 0, "eth_src", 0, 48):
            changes["saves_label"] = True
        elif moved is not None and moved == ("eth_dst", 0, "eth_dst", moved[3], LABEL_BITS - moved[3]):
            changes["shift"] = moved[3]
        elif _forgets_port(action):
            changes["may_return"] = True
        elif not _clears(action, changes.get("shift")):
            raise _Foreign
    if isinstance(last, parser.OFPActionGroup) and not {"saves_label", "may_return"} & changes.keys():
        return ToGroup(last.group_id, **changes)
    if not isinstance(last, parser.OFPActionOutput):
        raise _Foreign
    return Output(last.port, **changes)


def _group(description: Any) -> Group:
    if description.type not in (ofp.OFPGT_SELECT, ofp.OFPGT_FF):
        raise _Foreign
    buckets = tuple(
        Bucket(
            0 if description.type == ofp.OFPGT_FF else bucket.weight,
            _sent(bucket.actions),
            bucket.watch_port if description.type == ofp.OFPGT_FF else None,
        )
        for bucket in description.buckets
    )
    return Group(description.group_id, buckets)
