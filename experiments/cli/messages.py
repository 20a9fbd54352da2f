"""What commands say on standard error, and their exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Sequence

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
