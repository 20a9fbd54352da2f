"""One picture of everything, made once a second at most and shared by all who look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import TypeAdapter

from controller.api.compressed import CompressedBody, compress
from controller.api.metrics import Figures
from controller.api.service import Service
from controller.model.api_field import api_field
from controller.model.live_views import LiveView
from controller.model.requests import ViewName
from controller.model.views import Sizes

_INTERVAL_S = 1.0
_SIZES_INTERVAL_S = 10.0
"""Rules are counted flow by flow: not each second."""

_LEVEL = 1
"""Level of zlib: the next ones take three times as long for a tenth less."""


@dataclass(frozen=True, kw_only=True)
class LiveDocument(LiveView):
    """Links, nodes, flows and figures at one moment."""

    time_s: float = api_field("When, in seconds since 1970.")
    event_id: str = api_field("Of the last event that is in it: /v1/events goes on from there.")
    rules: dict[str, int] = api_field("Rules and groups that each switch should have; some seconds old.")
    figures: Figures


class LiveSnapshots:
    """Answers everybody who asks within an interval with the same bytes."""

    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._document = TypeAdapter(LiveDocument)
        self._making: asyncio.Task[CompressedBody] | None = None
        self._made_at = float("-inf")
        self._sizes: Sizes | None = None
        self._sized_at = float("-inf")

    async def latest(self) -> CompressedBody:
        """Return the last snapshot, or a new one if it is too old.

        Raises:
            RequestError: The controller is busy or stopping.
        """
        making = self._making
        is_current = making is not None and (
            not making.done() or (making.exception() is None and self._clock() - self._made_at < _INTERVAL_S)
        )
        if making is None or not is_current:
            self._made_at = self._clock()
            making = self._making = asyncio.ensure_future(self._make())
        return await asyncio.shield(making)

    async def _make(self) -> CompressedBody:
        live, event_id = await self._service.view(ViewName.LIVE, LiveView)
        sizes = await self._recent_sizes()
        document = LiveDocument(
            **vars(live),
            time_s=time.time(),
            event_id=event_id,
            rules=sizes.switch_rules,
            figures=self._service.metrics.figures(self._service.waiting),
        )
        return await asyncio.to_thread(lambda: compress(self._document.dump_json(document), _LEVEL))

    async def _recent_sizes(self) -> Sizes:
        now = self._clock()
        if self._sizes is None or now - self._sized_at >= _SIZES_INTERVAL_S:
            self._sizes, self._sized_at = (await self._service.view(ViewName.SIZES, Sizes))[0], now
        return self._sizes
