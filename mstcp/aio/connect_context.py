"""What `open_connection` and `create_connection` return: to be awaited, or entered with `async with`."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, TypeVar

from mstcp.aio.streams import StreamReader, StreamWriter, leave

T = TypeVar("T")


class ConnectCoroutine(Coroutine[Any, Any, T], Generic[T]):
    """A coroutine that opens something; `await` gives it, and tasks can be made of it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """See `collections.abc.Coroutine`."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """See `collections.abc.Coroutine`."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """See `collections.abc.Coroutine`."""
        self._coroutine.close()


class ConnectContext(ConnectCoroutine[tuple[StreamReader, StreamWriter]]):
    """Opens a connection; as a context manager it closes it too, at once if the block raises."""

    async def __aenter__(self) -> tuple[StreamReader, StreamWriter]:
        reader, self._writer = await self
        return reader, self._writer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await leave(self._writer, kind)
