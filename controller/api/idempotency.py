"""A request that is sent again with the same `Idempotency-Key` is answered as the first time."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller.errors import ErrorCode, RequestError, key_of_another

_T = TypeVar("_T")

_CAPACITY = 4096
_AGE_S = 3600.0

_PASSING = (ErrorCode.UNAVAILABLE, ErrorCode.DEADLINE_EXCEEDED)
"""Refusals that say nothing about the next try."""


@dataclass
class _Entry(Generic[_T]):
    digest: str
    expires_at: float
    answer: asyncio.Future[_T | RequestError]


class IdempotencyStore(Generic[_T]):
    """Remembers the answers to requests by their keys: up to a number of them, for a while."""

    def __init__(
        self,
        capacity: int = _CAPACITY,
        age_s: float = _AGE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._capacity = capacity
        self._age_s = age_s
        self._clock = clock
        self._entries: OrderedDict[tuple[str, str], _Entry[_T]] = OrderedDict()

    async def answer(
        self, client: str, key: str, digest: str, make: Callable[[], Awaitable[_T]]
    ) -> tuple[_T, bool]:
        """Return the answer to a request, and whether it is that of an earlier one with the same key.

        `digest` tells different requests of a client apart that have the same key.

        Raises:
            InvalidRequest: the key belongs to another request.
            RequestError: what `make` raised, now or the first time.
        """
        while True:
            entry = self._find(client, key)
            if entry is None:
                return await self._make(client, key, digest, make), False
            if entry.digest != digest:
                raise key_of_another()
            try:
                result = await asyncio.shield(entry.answer)
            except asyncio.CancelledError:
                if not entry.answer.cancelled():
                    raise
                continue  # the one who asked first has gone, and its request was undone
            if isinstance(result, RequestError):
                raise result
            return result, True

    def _find(self, client: str, key: str) -> _Entry[_T] | None:
        now = self._clock()
        while self._entries and next(iter(self._entries.values())).expires_at <= now:
            self._entries.popitem(last=False)
        return self._entries.get((client, key))

    async def _make(self, client: str, key: str, digest: str, make: Callable[[], Awaitable[_T]]) -> _T:
        answer: asyncio.Future[_T | RequestError] = asyncio.get_running_loop().create_future()
        entry = _Entry(digest, self._clock() + self._age_s, answer)
        self._entries[client, key] = entry
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)
        try:
            result = await make()
        except RequestError as error:
            if error.code in _PASSING:
                self._forget(client, key, entry)
            else:
                answer.set_result(error)
            raise
        except BaseException:
            self._forget(client, key, entry)
            raise
        answer.set_result(result)
        return result

    def _forget(self, client: str, key: str, entry: _Entry[_T]) -> None:
        if self._entries.get((client, key)) is entry:
            del self._entries[client, key]
        entry.answer.cancel()
