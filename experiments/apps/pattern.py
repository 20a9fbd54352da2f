"""The payload: pseudo-random bytes that both ends can compute at any offset, to check every byte.

The pattern repeats after a prime number of bytes, so that no reordering of whole packets or frames maps it on
itself.
"""

from __future__ import annotations

import numpy as np

PERIOD_BYTES = 1_048_573
"""The largest prime below 2**20."""
_STRIDE_BYTES = 618_031
"""Between the payloads of two flows: near the period times the golden ratio, so that they lie far apart."""


class Pattern:
    """The payload of all flows of a run, made from a seed; `of` gives that of one."""

    def __init__(self, seed: int) -> None:
        one = np.random.default_rng(seed).integers(0, 256, PERIOD_BYTES, dtype=np.uint8).tobytes()
        self._bytes = one + one
        self._shift = 0

    def of(self, number: int) -> Pattern:
        """Return the payload number `number`, which is another for each below `PERIOD_BYTES`."""
        other = Pattern.__new__(Pattern)
        other._bytes = self._bytes  # 2 MiB that hundreds of flows share
        other._shift = number * _STRIDE_BYTES % PERIOD_BYTES
        return other

    def at(self, offset: int, length: int) -> bytes:
        """Return the `length` bytes, one period at most, that stand at `offset` of the stream."""
        if length > PERIOD_BYTES:
            raise ValueError(f"{length} bytes asked of a pattern of {PERIOD_BYTES}")
        start = (offset + self._shift) % PERIOD_BYTES
        return self._bytes[start : start + length]

    def wrong_bytes(self, offset: int, data: bytes) -> int:
        """Return how many bytes of `data`, which arrived at `offset`, are not the pattern's."""
        wrong = 0
        for begin in range(0, len(data), PERIOD_BYTES):
            part = data[begin : begin + PERIOD_BYTES] if begin or len(data) > PERIOD_BYTES else data
            expected = self.at(offset + begin, len(part))
            if expected != part:
                pairs = np.frombuffer(expected, dtype=np.uint8) != np.frombuffer(part, dtype=np.uint8)
                wrong += int(np.count_nonzero(pairs))
        return wrong
