"""What stops a command, and how to go on: SIGTERM does as Ctrl-C, what is finished is kept."""

from __future__ import annotations

import argparse
import shlex
import signal
from types import FrameType


def stop_on_sigterm() -> None:
    """Have SIGTERM raise KeyboardInterrupt."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise KeyboardInterrupt


def resume_command(args: argparse.Namespace) -> str:
    """Return the command line that goes on with what a command with `--resume` has left."""
    resume = [] if args.resume else ["--resume"]
    return shlex.join(["mstcp-lab", *args.given, *resume])
