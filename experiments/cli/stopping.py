"""What stops a command, and how to go on: SIGTERM does as Ctrl-C, what is finished is kept."""

from __future__ import annotations

import argparse
import shlex
import signal
from types import FrameType


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
