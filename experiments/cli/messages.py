"""What commands say on standard error, their exit statuses, and what stops them: SIGTERM does as Ctrl-C."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from types import FrameType

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def say(text: str) -> None:
    """Print a line on standard error, at once."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def complain(what: object, status: int) -> int:
    """Print a failure as a sentence on standard error, and return the exit status that it leads to."""
    text = str(what)
    say(f"mstcp-lab: {text}" + ("" if text.endswith((".", "!", "?")) else "."))
    return status


def exit_status(failures: Sequence[str]) -> int:
    """Print the failures of runs, and return the exit status."""
    for failure in failures:
        complain(failure, EXIT_FAILED)
    return EXIT_FAILED if failures else 0


def stop_on(*signals: signal.Signals) -> None:
    """Have signals raise KeyboardInterrupt, unless this process was started to ignore them."""
    for number in signals:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise KeyboardInterrupt


def resume_command(args: argparse.Namespace) -> str:
    """Return the command line that goes on with what a command with `--resume` has left."""
    resume = [] if args.resume else ["--resume"]
    return shlex.join(["mstcp-lab", *args.given, *resume])
