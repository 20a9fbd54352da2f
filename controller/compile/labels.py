"""The fixed rules of a switch: labels to ports, the end of bypasses and of labels, its hosts.

They depend on the switch's own links and hosts alone, so nothing is changed here when flows come, move or go.
A label counts only where it comes in from another switch. Frames from a host's port go where their IP
addresses say, with a label of the ingress's: a host may well have an Ethernet address that looks like one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from controller.compile.neighbours import asking_rule, speaking_rules
from controller.model.labels import ANY_LABEL, BYPASS, DEFAULT, FLOW, STOP
from controller.model.next_hops import NextHops
from controller.model.rules import (
    COOKIE_LABEL,
    PRIORITY_LABEL,
    PRIORITY_LOCAL,
    PRIORITY_MISS,
    PRIORITY_ROUTE,
    PRIORITY_TAGGED,
    TABLE_BYPASS,
    TABLE_CLASSIFY,
    TABLE_DEFAULT,
    TABLE_DELIVER,
    TABLE_LABEL,
    Drop,
    GotoTable,
    Match,
    Output,
    RestoreLabel,
    Rule,
    Untag,
    delivery_cookie,
    eth_type_of,
    host_cookie,
    label_cookie,
)

_BYPASSED_MAC = "02:42:59:ff:ff:ff"
"""The Ethernet source of packets that have been on a bypass: hosts do not look at it, and it is no label."""


def label_rules(switch: str, neighbours: Iterable[str], next_hops: NextHops) -> list[Rule]:
    """Return the rules of a switch that depend on nothing but its links to other switches."""
    form = next_hops.format
    end = Match(destination_mac=form.beginning_with(form.end_of_bypass, BYPASS))
    rules = [
        Rule(TABLE_BYPASS, PRIORITY_LABEL, end, RestoreLabel(_BYPASSED_MAC, TABLE_LABEL), COOKIE_LABEL),
        Rule(TABLE_BYPASS, PRIORITY_MISS, Match(), GotoTable(TABLE_LABEL), COOKIE_LABEL),
    ]
    for kind, table in ((FLOW, TABLE_DELIVER), (DEFAULT, TABLE_DEFAULT)):
        stop = Match(destination_mac=form.beginning_with(STOP, kind))
        rules.append(Rule(TABLE_LABEL, PRIORITY_LABEL, stop, GotoTable(table), COOKIE_LABEL))
    for neighbour in neighbours:
        entering = Match(in_port=next_hops[switch, neighbour], destination_mac=ANY_LABEL)
        rules.append(Rule(TABLE_CLASSIFY, PRIORITY_LABEL, entering, GotoTable(TABLE_BYPASS), COOKIE_LABEL))
        guarded = replace(next_hops.action(switch, neighbour), shift=form.bits)
        straight = Output(next_hops[switch, neighbour], shift=form.bits)
        for kind, action in ((FLOW, guarded), (DEFAULT, guarded), (BYPASS, straight)):
            match = Match(destination_mac=form.beginning_with(next_hops.numbers[switch, neighbour], kind))
            rules.append(Rule(TABLE_LABEL, PRIORITY_LABEL, match, action, label_cookie(kind == FLOW)))
    return rules


def host_rules(ip: str, mac: str, port: int, tag: int | None, next_hops: NextHops) -> tuple[Rule, ...]:
    """Return the rules of a host's switch: for packets to it, of flows and others, and about neighbours."""
    of_flows = Match(eth_type_of(ip), destination_ip=ip, destination_mac=next_hops.format.label((), FLOW))
    others = Match(eth_type_of(ip), destination_ip=ip)
    action = Output(port, destination_mac=mac, tag=tag)
    return (
        Rule(TABLE_DELIVER, PRIORITY_ROUTE, of_flows, action, delivery_cookie(ip)),
        Rule(TABLE_DEFAULT, PRIORITY_LOCAL, others, action, host_cookie(ip)),
        asking_rule(ip, action),
        *speaking_rules(ip, port),
    )


def tag_rules(port: int, tag: int) -> tuple[Rule, Rule]:
    """Return the rules for what comes in from a host with a VLAN tag; frames without it are not its own."""
    tagged, others = Match(in_port=port, tag=tag), Match(in_port=port, untagged=0)
    return (
        Rule(TABLE_CLASSIFY, PRIORITY_TAGGED, tagged, Untag(TABLE_CLASSIFY), COOKIE_LABEL),
        Rule(TABLE_CLASSIFY, PRIORITY_TAGGED - 1, others, Drop(), COOKIE_LABEL),
    )
