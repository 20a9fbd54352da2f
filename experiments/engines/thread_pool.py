"""Does many pieces of work in as many threads as are wanted, and ends them all when the user stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TypeVar

SIGNAL_S = 0.5
"""The longest that the main thread waits at once. A signal that comes just before it begins to wait, as
Ctrl-C may while another thread starts a process, is seen when it wakes."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def run_together(
    items: Sequence[_Item], work: Callable[[_Item], _Result], *, workers: int, stop: Callable[[], None]
) -> Iterator[Iterator[tuple[int, _Item, Future[_Result]]]]:
    """Do work on items in threads, begun in their order, this many at once.

    Yields number (from 0), item and result of each as it ends. If anything goes wrong here or in the block,
    `stop` is called: it ends what is being done, and nothing else is begun.
    """
    pool = ThreadPoolExecutor(max(1, workers))
    futures: dict[Future[_Result], tuple[int, _Item]] = {}
    ended: SimpleQueue[Future[_Result]] = SimpleQueue()

    def each() -> Iterator[tuple[int, _Item, Future[_Result]]]:
        while futures:
            try:
                future = ended.get(timeout=SIGNAL_S)
            except Empty:
                continue
            yield (*futures.pop(future), future)

    try:
        futures |= {pool.submit(work, item): (number, item) for number, item in enumerate(items)}
        for future in futures:
            future.add_done_callback(ended.put)
        yield each()
    except BaseException:
        # First: what is cancelled by then is never begun.
        pool.shutdown(wait=False, cancel_futures=True)
        stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
