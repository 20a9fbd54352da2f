"""`mstcp-lab`: one module for each command; `command_line` puts them together."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from experiments.installation import repair_command
from switch.program_path import search_system_folders

EXIT_INCOMPLETE = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (0 done, 1 failed, 2 wrong arguments, 130 stopped)."""
    search_system_folders()
    try:
        # Modules of this package run as programs of their own too, and need none of the commands then.
        from experiments.cli import command_line

        return command_line.main(argv)
    except ModuleNotFoundError as error:
        sys.stderr.write(f"mstcp-lab: {error}: the installation is not complete. Run: {repair_command()}\n")
        return EXIT_INCOMPLETE
