"""What `mstcp-controller` starts: the command, or a sentence where the installation lacks something."""

from __future__ import annotations

import sys

EXIT_INCOMPLETE = 2


def main() -> int:
    """Run the command; returns its exit status, 2 where a package is missing."""
    try:
        from controller import cli

        return cli.main()
    except ImportError as error:
        sys.stderr.write(
            f"mstcp-controller: {error}: the installation is not complete. Run: "
            "pip install --force-reinstall mstcp-lab, or in a clone: make setup\n"
        )
        return EXIT_INCOMPLETE
