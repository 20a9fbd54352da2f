"""The select group of equal-cost multipath.

Open vSwitch hashes a connection's addresses alike in every switch and takes the bucket at that place. If
every switch had its buckets in the same order, connections that the first switch sends one way would all make
the same choice at the second: of the four paths between two pods of a small fat tree, two would lie idle
(hash polarisation). So each way has many buckets, in an order of the switch's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from controller.model.rules import Bucket, Group, Output

__all__ = ["ecmp_group"]

_BUCKETS = 64
"""Of a group, at most; a power of two, since Open vSwitch has as many places, and below its limit of 256."""


def ecmp_group(number: int, switch: str, outputs: Sequence[Output]) -> Group:
    """Return the group that spreads connections evenly over ports; the same arguments give the same group.

    Args:
        number: Of the group.
        switch: Its name; switches with different names choose independently of each other.
        outputs: The ports, in a fixed order.
    """
    ways = [output for output in outputs for _ in range(max(1, _BUCKETS // len(outputs)))]
    order = sorted(range(len(ways)), key=lambda place: hashlib.sha256(f"{switch} {place}".encode()).digest())
    return Group(number, tuple(Bucket(1, ways[place]) for place in order))
