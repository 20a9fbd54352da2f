"""The payload: pseudo-random bytes that both ends can compute at any offset, to check every byte.

The pattern repeats after a prime number of bytes, so that no reordering of whole packets or frames maps it on
itself.
"""

from __future__ import annotations

import numpy as np

PERIOD_BYTES = 1_048_573
"""The largest prime below 2**20."""


class Pattern:
    """The payload of one flow, made from a seed.

    Args:
        seed: the same on both ends.
        longest: the longest slice in bytes that is asked for.
    """

    def __init__(self, seed: int, longest: int) -> None:
        one = np.random.default_rng(seed).integers(0, 256, PERIOD_BYTES, dtype=np.uint8)
        self._bytes = np.tile(one, 1 + -(-longest // PERIOD_BYTES)).tobytes()
        self._longest = longest

    def at(self, offset: int, length: int) -> bytes:
        """Return the `length` bytes that stand at `offset` of the stream."""
        if length > self._longest:
            raise ValueError(f"{length} bytes asked of a pattern made for {self._longest}")
        start = offset % PERIOD_BYTES
        return self._bytes[start : start + length]

    def wrong_bytes(self, offset: int, data: bytes) -> int:
        """Return how many bytes of `data`, which arrived at `offset`, are not the pattern's."""
        expected = self.at(offset, len(data))
        if expected == data:
            return 0
        pairs = np.frombuffer(expected, dtype=np.uint8) != np.frombuffer(data, dtype=np.uint8)
        return int(np.count_nonzero(pairs))
