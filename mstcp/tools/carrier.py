"""The connections of a program under `mstcp run`, carried to the far proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from mstcp.endpoints import Destination, Rule, plain_address
from mstcp.tools.proxy import SharedUpstream, Upstream
from mstcp.tools.relay import Pair, Tasks, abort, relay, reporting

_ACCEPTING_TURNS = 20
"""Turns of the event loop after which connections that were made before are taken up."""


class Started(NamedTuple):
    """A command that runs, and the sentence that says why it does not, if there is one after its end."""

    process: asyncio.subprocess.Process
    refusal: Callable[[], str] = lambda: ""


class Carrier:
    """Opens what a program connects to, and carries the bytes.

    Args:
        upstream: The far proxy.
        rules: Destinations that go over MSTCP; None: all but loopback.
        report: Gets a sentence for each connection that fails.

    Attributes:
        failed: Reports why a connection failed.
        opened: How many connections were opened over MSTCP.
    """

    def __init__(
        self,
        upstream: Upstream | SharedUpstream,
        rules: Sequence[Rule] | None,
        report: Callable[[str], None],
    ) -> None:
        self.rules = rules
        self.report = report
        self.failed = reporting(report)
        self.opened = 0
        self._upstream = upstream
        self._connections = Tasks(self.failed)
        self._left = asyncio.Event()

    def is_wanted(self, address: str, port: int) -> bool:
        """Return whether connections to a destination are to go over MSTCP."""
        if self.rules is None:
            return not plain_address(address).is_loopback
        return any(rule.fits(address, port) for rule in self.rules)

    async def open(self, to: Destination) -> Pair:
        """Open a connection over MSTCP; raises as `Upstream.open`."""
        pair = await self._upstream.open(to)
        self.opened += 1
        return pair

    def carry(self, inner: Pair, opening: Awaitable[Pair]) -> None:
        """Carry a connection of the program's on to one that is being opened."""
        self._connections.start(self._carry(inner, opening))

    async def _carry(self, inner: Pair, opening: Awaitable[Pair]) -> None:
        try:
            outer = await opening
        except BaseException:
            abort(inner)
            raise
        await relay(inner, outer, self._left)

    async def finish(self) -> None:
        """Bring over what the program, which has ended, has sent; wait for connections of its children."""
        for _ in range(_ACCEPTING_TURNS):
            await asyncio.sleep(0)
        self._left.set()
        await self._connections.ended()
        await self._upstream.close()

    @property
    def open_connections(self) -> int:
        """How many connections are carried now."""
        return len(self._connections)

    async def stop(self) -> None:
        """Break what is still open."""
        await self._connections.stop()
        await self._upstream.close()
