"""The simulator (crates/netsim): a description in JSON goes in, results in JSON come out (docs/simulator.md).

A run takes no root, opens no file and no socket, and lets other threads run meanwhile; Ctrl-C ends it.
"""

from collections.abc import Callable

__all__ = ["InvalidDescription", "check", "run"]

class InvalidDescription(ValueError):
    """The description has an unknown key, a wrong type or a value that cannot be.

    `args` are the place (as `flows[0].paths[1]`, empty where JSON itself says the place) and the reason.
    """

def check(description: str, /) -> None:
    """Check a description without making the run."""

def run(description: str, /, trace: Callable[[str, bytes], object] | None = None) -> str:
    """Make a run; the same description gives the same bytes on any machine.

    Args:
        description: of the run, as JSON.
        trace: takes what `trace` of the description asks for, piece by piece: the name of a file, and the
            bytes that follow in it.

    Returns:
        The results, as JSON.

    Raises:
        InvalidDescription: it is not one.
        KeyboardInterrupt: the user interrupted the run.
    """
