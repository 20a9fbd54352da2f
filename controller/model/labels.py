"""Labels: whole paths written into the Ethernet destination of packets, as a list of links to leave by.

The first byte says that it is a label, and of what traffic. Then come fields of equal width, one for each
switch behind the ingress: the number of the neighbour that it sends to. A switch looks at the first field,
shifts the others up and sends. Where the first field is `STOP` the label has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT, FLOW, BYPASS = 0x16, 0x1A, 0x1E
"""First bytes of labels: of packets on default routes, of flows, on a bypass; locally administered."""

LABEL_BITS = 40
"""What the first byte leaves of an Ethernet address."""

STOP = 0
"""The field at which a label ends: neighbours are numbered from 1."""

_BRANCH_BITS = 4
"""What tells branches apart where a label ends on the way: of a split flow, or bypasses."""

MAX_BRANCHES = (1 << _BRANCH_BITS) - 1
"""Branches are numbered from 0, bypasses from 1."""


def format_mac(value: int) -> str:
    """Return an Ethernet address as text."""
    return value.to_bytes(6, "big").hex(":")


def mac_value(text: str) -> int:
    """Return an Ethernet address as a number."""
    return int(text.replace(":", ""), 16)


@dataclass(frozen=True)
class LabelFormat:
    """How many bits a field has."""

    bits: int

    @classmethod
    def of_degree(cls, neighbours: int) -> LabelFormat:
        """Return the format for switches with `neighbours` neighbours at most."""
        return cls((neighbours + 1).bit_length())

    @property
    def end_of_bypass(self) -> int:
        """The field at which a bypass ends; no neighbour has this number."""
        return (1 << self.bits) - 1

    @property
    def most_fields(self) -> int:
        """How many fields a label holds."""
        return LABEL_BITS // self.bits

    @property
    def most_continued(self) -> int:
        """How many fields a label holds that another follows: beside them its end and the branch."""
        return self.most_fields - 1 - -(-_BRANCH_BITS // self.bits)

    def label(self, fields: Sequence[int], kind: int = FLOW, branch: int = 0) -> str:
        """Return a label; behind its end there is room for a branch."""
        value = 0
        for place, field in enumerate(fields, 1):
            value |= field << (LABEL_BITS - place * self.bits)
        if branch:
            width = -(-_BRANCH_BITS // self.bits) * self.bits
            value |= branch << (LABEL_BITS - (len(fields) + 1) * self.bits - width)
        return format_mac(kind << LABEL_BITS | value)

    def first(self, label: int) -> tuple[int, int]:
        """Return the first field of a label, and what is left of it for the next switch."""
        place = LABEL_BITS - self.bits
        return label >> place & self.end_of_bypass, label << self.bits & (1 << LABEL_BITS) - 1

    def beginning_with(self, field: int, kind: int) -> str:
        """Return a match for labels whose first field is this, as `value/mask`."""
        mask = 0xFF << LABEL_BITS | self.end_of_bypass << (LABEL_BITS - self.bits)
        return f"{self.label((field,), kind)}/{format_mac(mask)}"


ANY_LABEL = "12:00:00:00:00:00/f3:00:00:00:00:00"
"""A match for all labels."""
