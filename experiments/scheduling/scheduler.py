"""Makes many runs: as many at once as there is room for, each handed over once, when it ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import closing
from typing import TypeVar

from experiments.engines.together import run_together
from experiments.scheduling.simulator import Simulator

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def each(
    items: Sequence[_Item],
    work: Callable[[_Item], _Result],
    simulator: Simulator,
    *,
    at_once: int | None = None,
) -> Generator[tuple[_Item, Future[_Result]], None, None]:
    """Yield each piece of work as it ends, with its outcome; close it to end what is left.

    Args:
        items: what is to be done, begun in this order.
        work: does one with the simulator, in a thread.
        simulator: ended if anything goes wrong here.
        at_once: how many are done at once; None for as many as the simulator can.
    """
    workers = simulator.at_once if at_once is None else at_once
    together = run_together(items, lambda _, item: work(item), workers=workers, stop=simulator.stop)
    with closing(together) as ending:
        for _, item, future in ending:
            yield item, future
