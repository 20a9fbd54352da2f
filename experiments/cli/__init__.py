"""`mstcp-lab`: one module for each command; `command_line` puts them together."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (0 done, 1 failed, 2 wrong arguments, 130 stopped)."""
    # Modules of this package run as programs of their own too, and need none of the commands then.
    from experiments.cli import command_line

    return command_line.main(argv)
