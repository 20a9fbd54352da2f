"""Transfers in both directions over paths that break; `python -m benchmarks.faults` runs many."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.faults.live import WINDOW_BYTES, transfer


@pytest.mark.parametrize("seed", [0, 1])
async def test_no_byte_is_lost_in_trouble(seed: int) -> None:
    outcome = await asyncio.wait_for(transfer(seed, 4 << 20), 60)
    assert outcome.is_equal
    assert outcome.faults
    assert outcome.reorder_max_bytes <= WINDOW_BYTES
