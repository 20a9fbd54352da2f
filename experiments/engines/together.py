"""Runs plans in as many threads as an engine takes, and ends them all when the user stops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from experiments.engines.base import Engine, RunPlan
from experiments.results import RunResult


def run_together(
    engine: Engine, plans: Sequence[RunPlan], work: Callable[[int, RunPlan], RunResult]
) -> Generator[tuple[int, RunPlan, Future[RunResult]], None, None]:
    """Yield number (from 0), plan and result of each run as it ends; close it to end all that are left.

    Args:
        engine: its `workers` are how many runs are made at once; it is stopped if anything goes wrong here.
        plans: the runs.
        work: makes one run, given its number and plan, in a thread.
    """
    pool = ThreadPoolExecutor(max(1, engine.workers))
    try:
        futures = {pool.submit(work, *numbered): numbered for numbered in enumerate(plans)}
        for future in as_completed(futures):
            yield (*futures[future], future)
    except BaseException:
        engine.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
