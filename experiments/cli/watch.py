"""A page about the runs that a command makes: `--watch`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from experiments.cli.messages import say
from experiments.errors import Interrupted
from experiments.model.events import Event, ignore
from experiments.model.job import Job

FLUSH_S = 0.5
"""For pages to hear that the runs were stopped."""


@contextmanager
def watching(job: Job, args: argparse.Namespace) -> Iterator[Callable[[Event], None]]:
    """Serve a page about a job's runs while they are made; yields what takes their events.

    PortTaken is raised before anything is started; what goes wrong later is said once, and the runs go on.
    """
    if not args.watch:
        yield ignore
        return
    from experiments.web.app import Content
    from experiments.web.documents import GrowingResults
    from experiments.web.event_log import EventLog
    from experiments.web.server import ANY_PORT, PageServer
    from experiments.web.watching import Watch

    log = EventLog()
    watch = Watch(job, log)
    with PageServer(Content([GrowingResults(job)], watch.plan, log), args.watch_port or ANY_PORT) as server:
        log.changed = server.wake
        say(f"Watch the runs at {server.address}")
        try:
            yield _forgiving(watch.take)
        except BaseException as error:
            stopped = isinstance(error, KeyboardInterrupt | Interrupted)
            watch.end("stopped" if stopped else "failed", str(error), time.time())
            time.sleep(FLUSH_S)
            raise
        watch.end("finished", "", time.time())
        if server.has_pages:
            say("The page stays until it is closed; Ctrl-C ends it.")
            with suppress(KeyboardInterrupt):
                server.wait_for_pages()


def _forgiving(take: Callable[[Event, float], None]) -> Callable[[Event], None]:
    """Hand events on until that fails once: no run ends by a fault of the page."""
    failed = False

    def handed_on(event: Event) -> None:
        nonlocal failed
        if failed:
            return
        try:
            take(event, time.time())
        except Exception as error:
            failed = True
            say(f"The page shows nothing new any more ({type(error).__name__}: {error}); the runs go on.")

    return handed_on
