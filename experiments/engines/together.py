"""Does many pieces of work in as many threads as are wanted, and ends them all when the user stops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TypeVar

SIGNAL_S = 0.5
"""The longest that the main thread waits at once. A signal that comes just before it begins to wait, as
Ctrl-C may while another thread starts a process, is seen when it wakes."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def run_together(
    items: Sequence[_Item],
    work: Callable[[int, _Item], _Result],
    *,
    workers: int,
    stop: Callable[[], None],
) -> Generator[tuple[int, _Item, Future[_Result]], None, None]:
    """Yield number (from 0), item and result of each piece of work as it ends; close it to end what is left.

    Args:
        items: what is to be done, begun in this order.
        work: does one, given its number and the item, in a thread.
        workers: how many are done at once.
        stop: ends what is being done; called if anything goes wrong here.
    """
    pool = ThreadPoolExecutor(max(1, workers))
    try:
        futures = {pool.submit(work, *numbered): numbered for numbered in enumerate(items)}
        ended: SimpleQueue[Future[_Result]] = SimpleQueue()
        for future in futures:
            future.add_done_callback(ended.put)
        while futures:
            try:
                future = ended.get(timeout=SIGNAL_S)
            except Empty:
                continue
            yield (*futures.pop(future), future)
    except BaseException:
        # First: what is cancelled by then is never begun.
        pool.shutdown(wait=False, cancel_futures=True)
        stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
