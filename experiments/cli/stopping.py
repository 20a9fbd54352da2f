"""SIGTERM stops a command as Ctrl-C does: what is finished is kept."""

from __future__ import annotations

import signal
from types import FrameType


def stop_on_sigterm() -> None:
    """Have SIGTERM raise KeyboardInterrupt."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise KeyboardInterrupt
