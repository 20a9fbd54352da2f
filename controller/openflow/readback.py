"""Reads rules and groups back from a switch: flow statistics and group descriptions to the core's model."""

from __future__ import annotations

from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from controller.rules.model import (
    Action,
    Bucket,
    GotoTable,
    Group,
    Match,
    Output,
    Rule,
    ToController,
    ToGroup,
)
from controller.rules.reconcile import Installed

__all__ = ["Readback"]

_OUR_FIELDS = {
    "eth_type": "eth_type",
    "ip_proto": "ip_protocol",
    "ipv4_src": "source_ip",
    "ipv4_dst": "destination_ip",
    "tcp_src": "source_port",
    "tcp_dst": "destination_port",
    "eth_src": "source_mac",
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
        self._rules: list[Any] = []
        self._groups: list[Any] = []

    def take(self, reply: Any) -> bool:
        """Take a part of an answer in; returns whether that was the last of all."""
        if reply.xid not in self.unanswered:
            return False
        is_rules = isinstance(reply, parser.OFPFlowStatsReply)
        (self._rules if is_rules else self._groups).extend(reply.body)
        if not reply.flags & ofp.OFPMPF_REPLY_MORE:
            self.unanswered.discard(reply.xid)
        return not self.unanswered

    def result(self) -> Installed:
        """Return what the switch has; what cannot be ours is named by its cookie or number."""
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
        return Installed(tuple(rules), tuple(groups), frozenset(foreign_cookies), frozenset(foreign_groups))


def _rule(entry: Any) -> Rule:
    if entry.idle_timeout or entry.hard_timeout:
        raise _Foreign
    match = _match(entry.match)
    return Rule(entry.table_id, entry.priority, match, _action(entry.instructions), entry.cookie)


def _match(match: Any) -> Match:
    fields: dict[str, Any] = {}
    for name, value in match.items():
        if name not in _OUR_FIELDS or isinstance(value, tuple):  # a tuple has a mask
            raise _Foreign
        fields[_OUR_FIELDS[name]] = value
    return Match(**fields)


def _action(instructions: list[Any]) -> Action:
    if len(instructions) != 1:
        raise _Foreign
    (instruction,) = instructions
    if isinstance(instruction, parser.OFPInstructionGotoTable):
        return GotoTable(instruction.table_id)
    if not isinstance(instruction, parser.OFPInstructionActions):
        raise _Foreign
    actions = instruction.actions
    if len(actions) == 1 and isinstance(actions[0], parser.OFPActionGroup):
        return ToGroup(actions[0].group_id)
    output = _output(actions)
    return ToController() if output.port == ofp.OFPP_CONTROLLER else output


def _output(actions: list[Any]) -> Output:
    mac: str | None = None
    if len(actions) == 2 and isinstance(actions[0], parser.OFPActionSetField) and actions[0].key == "eth_src":
        mac, actions = actions[0].value, actions[1:]
    if len(actions) != 1 or not isinstance(actions[0], parser.OFPActionOutput):
        raise _Foreign
    return Output(actions[0].port, mac)


def _group(description: Any) -> Group:
    if description.type != ofp.OFPGT_SELECT:
        raise _Foreign
    buckets = tuple(Bucket(bucket.weight, _output(bucket.actions)) for bucket in description.buckets)
    return Group(description.group_id, buckets)
