"""The options `--watch` and `--watch-port` of `run` and `resume`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from experiments.cli.argument_types import port
from experiments.cli.messages import say
from experiments.errors import Interrupted
from experiments.model.events import Event, ignore
from experiments.model.job import Job

FLUSH_S = 0.5
"""For pages to hear that the runs were stopped."""


def add_watch_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--watch` to a command that makes runs."""
    parser.add_argument(
        "--watch",
        action="store_true",
        help="show the progress of the runs on a web page; its address is printed",
    )
    parser.add_argument(
        "--watch-port",
        type=port,
        default=0,
        metavar="PORT",
        help="port of the page on 127.0.0.1 (default: a free one)",
    )


@contextmanager
def watching(job: Job, args: argparse.Namespace) -> Iterator[Callable[[Event], None]]:
    """Serve a page about a job's runs while they are made; yields what takes their events.

    What goes wrong with the page is said once, and the runs go on.

    Raises:
        PortTaken: the port cannot be used; nothing has been started then.
    """
    if not args.watch:
        yield ignore
        return
    from experiments.web.app import Content
    from experiments.web.documents import GrowingResults
    from experiments.web.event_log import EventLog
    from experiments.web.server import PageServer
    from experiments.web.watching import Watch

    log = EventLog()
    watch = Watch(job, log)
    with PageServer(Content([GrowingResults(job)], watch.plan, log), args.watch_port) as server:
        log.changed = server.wake
        say(f"Watch the runs at {server.address}")
        try:
            yield _Forgiving(watch.take)
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


class _Forgiving:
    """Hands events on until that fails once: no run ends by a fault of the page."""

    def __init__(self, take: Callable[[Event, float], None]) -> None:
        self._take = take
        self._failed = False

    def __call__(self, event: Event) -> None:
        if self._failed:
            return
        try:
            self._take(event, time.time())
        except Exception as error:
            self._failed = True
            say(f"The page shows nothing new any more ({type(error).__name__}: {error}); the runs go on.")
