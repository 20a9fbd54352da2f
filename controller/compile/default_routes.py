"""Default routes: the label that a switch writes into packets to a host behind another one, of no flow.

Where several paths have the same least delay, a select group chooses one of them as a whole, so the switches
behind the ingress make no choice of their own. Where a path is longer than a label, the switch at which the
label ends has a default route to the same host, which writes the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from controller.compile.neighbours import asking_rule
from controller.model.labels import DEFAULT
from controller.model.neighbour import NO_IP
from controller.model.next_hops import NextHops
from controller.model.rules import (
    PRIORITY_ROUTE,
    TABLE_DEFAULT,
    Bucket,
    Group,
    Match,
    Output,
    Rule,
    ToGroup,
    eth_type_of,
    host_cookie,
)

ELSEWHERE = "elsewhere"
"""Stands for all addresses that no host of the network has: its gateway leads there."""

_PRIORITY_GATEWAY = 40
"""Below the routes to hosts, above what drops labels that have ended and are for nobody."""

IDLE_S = 300
"""Idle timeout of a default route."""

_MAX_PATHS = 64
"""Buckets of a group at most; Open vSwitch has room for 256."""


@dataclass(frozen=True)
class Route:
    """What a switch does with packets to the hosts of another one.

    Attributes:
        action: Of its rules.
        group: To which they lead, where there are several paths.
        relays: The switches at which its labels end before the paths do.
        macs: Of a route to the gateway: Ethernet destinations of the packets for it.
    """

    action: Output | ToGroup
    group: Group | None = None
    relays: tuple[str, ...] = ()
    macs: tuple[str, ...] = ()

    def rules(self, ip: str) -> tuple[Rule, ...]:
        """Return the rules for packets to an address, or by the gateway."""
        if not self.macs:
            return _host_rules(ip, self.action)
        cookie = host_cookie(NO_IP)
        matches = [Match(destination_mac=mac) for mac in self.macs]
        return tuple(Rule(TABLE_DEFAULT, _PRIORITY_GATEWAY, match, self.action, cookie) for match in matches)

    def to_gateway(self, mac: str, next_hops: NextHops) -> Route:
        """Return this route for what hosts send to the gateway, and for labels that have ended on the way."""
        return replace(self, macs=(mac, next_hops.format.label((), DEFAULT)))


def route_over(
    paths: Mapping[tuple[str, ...], int], end: str, next_hops: NextHops, group_number: int
) -> Route:
    """Return the route over paths of switches, by their weights.

    Each path leads from one switch towards `end`, as far as a label reaches or farther. Where there are
    several, a group with the given number chooses.
    """
    reach = _reach(next_hops)
    relays = dict.fromkeys(path[reach] for path in paths if len(path) > reach and path[reach] != end)
    actions = [(weight, _send(path, next_hops)) for path, weight in paths.items()]
    if len(actions) == 1:
        return Route(actions[0][1], None, tuple(relays))
    buckets = tuple(Bucket(weight, action) for weight, action in actions)
    return Route(ToGroup(group_number), Group(group_number, buckets), tuple(relays))


def _reach(next_hops: NextHops) -> int:
    """Return how many links a packet passes at most by one label."""
    return next_hops.format.most_fields + 1


def _send(path: Sequence[str], next_hops: NextHops) -> Output | ToGroup:
    fields = [next_hops.numbers[step] for step in pairwise(path[1 : _reach(next_hops) + 1])]
    return next_hops.labelled(path[0], path[1], next_hops.format.label(fields, DEFAULT))


def equal_paths(
    start: str, end: str, nearer: Mapping[str, Sequence[str]], next_hops: NextHops
) -> dict[tuple[str, ...], int]:
    """Return paths of equal delay, as far as one label reaches, with weights as if each switch chose evenly.

    `nearer` are the neighbours of each switch that are on such paths; there are no circles.
    """
    shares: dict[tuple[str, ...], float] = {(start,): 1.0}
    longest = _reach(next_hops) + 1
    while unfinished := [path for path in shares if path[-1] != end and len(path) < longest]:
        for place, path in enumerate(unfinished):
            share, following = shares.pop(path), nearer[path[-1]]
            if len(shares) + len(following) > _MAX_PATHS:
                following = (following[place % len(following)],)
            for node in following:
                longer = (*path, node)
                shares[longer] = share / len(following)
    least = min(shares.values())
    return {path: round(share / least) for path, share in sorted(shares.items())}


@lru_cache(maxsize=1 << 16)
def _host_rules(ip: str, action: Output | ToGroup) -> tuple[Rule, ...]:
    """Return the rules for all packets to a host behind another switch, and for who asks for it."""
    match = Match(eth_type_of(ip), destination_ip=ip)
    route = Rule(TABLE_DEFAULT, PRIORITY_ROUTE, match, action, host_cookie(ip), IDLE_S)
    return route, asking_rule(ip, action)
