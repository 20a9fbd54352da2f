"""The first table of every switch: LLDP and ARP go to the controller, all else to the pinned paths."""

from __future__ import annotations

from controller.rules.model import (
    COOKIE_CLASSIFY,
    ETH_TYPE_ARP,
    ETH_TYPE_LLDP,
    PRIORITY_ARP,
    PRIORITY_LLDP,
    PRIORITY_MISS,
    TABLE_CLASSIFY,
    TABLE_DEFAULT,
    TABLE_PINNED,
    GotoTable,
    Match,
    Rule,
    ToController,
)

__all__ = ["classification_rules"]


def classification_rules() -> tuple[Rule, ...]:
    """Return the rules that every switch has from the moment it connects."""
    return (
        Rule(TABLE_CLASSIFY, PRIORITY_LLDP, Match(eth_type=ETH_TYPE_LLDP), ToController(), COOKIE_CLASSIFY),
        Rule(TABLE_CLASSIFY, PRIORITY_ARP, Match(eth_type=ETH_TYPE_ARP), ToController(), COOKIE_CLASSIFY),
        Rule(TABLE_CLASSIFY, PRIORITY_MISS, Match(), GotoTable(TABLE_PINNED), COOKIE_CLASSIFY),
        Rule(TABLE_PINNED, PRIORITY_MISS, Match(), GotoTable(TABLE_DEFAULT), COOKIE_CLASSIFY),
    )
