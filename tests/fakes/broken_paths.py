"""Connections over relays that break."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from benchmarks.faults.relay import Path, listening
from tests.fakes.connections import Pair, connected


@contextlib.asynccontextmanager
async def over_paths(
    count: int, *, silent: tuple[int, ...] = ()
) -> AsyncIterator[tuple[Pair, Pair, list[Path]]]:
    """Yield both ends of a connection whose streams go over relays; the silent pass nothing at first."""
    paths: list[Path] = []

    @contextlib.asynccontextmanager
    async def through(port: int) -> AsyncIterator[int]:
        paths.extend(Path(port, 1e9) for _ in range(count))
        for index in silent:
            paths[index].stop(0, 1)
        async with listening(paths) as start:
            yield start

    async with connected(count, through=through, server={"reorder_buffer_bytes": 1 << 18}) as ends:
        yield *ends, paths
