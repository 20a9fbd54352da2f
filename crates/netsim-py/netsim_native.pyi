"""The simulator (crates/netsim): a description in JSON goes in, results in JSON come out (docs/simulator.md).

A run takes no root, opens no file and no socket, and lets other threads run meanwhile; Ctrl-C ends it.
"""

from collections.abc import Callable
from typing import final

__all__ = ["Ack", "Acked", "InvalidDescription", "Subflow", "View", "Window", "check", "run"]

class InvalidDescription(ValueError):
    """The description has an unknown key, a wrong type or a value that cannot be.

    `args` are the place (as `flows[0].paths[1]`, empty where JSON itself says the place) and the reason.
    """

@final
class Window:
    """The congestion window of a connection; a congestion control of one's own changes the first two."""

    cwnd_bytes: float
    ssthresh_bytes: float
    """Infinite before the first loss."""
    @property
    def mss_bytes(self) -> int: ...
    @property
    def srtt_s(self) -> float | None: ...

@final
class Acked:
    """What an ACK of new data says to a congestion control."""

    @property
    def now_s(self) -> float: ...
    @property
    def bytes(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def srtt_s(self) -> float | None: ...

@final
class Subflow:
    """A subflow of an MPTCP connection, as its scheduler sees it."""

    @property
    def index(self) -> int: ...
    @property
    def srtt_s(self) -> float:
        """0 until measured."""
    @property
    def rtt_variation_s(self) -> float: ...
    @property
    def cwnd_bytes(self) -> int: ...
    @property
    def in_flight_bytes(self) -> int: ...
    @property
    def room_bytes(self) -> int: ...
    @property
    def segment_bytes(self) -> int: ...
    @property
    def has_room(self) -> bool:
        """Whether a whole segment may leave now."""

@final
class View:
    """What a scheduler chooses by: the subflows that can be used, the connection's unsent data and window."""

    @property
    def subflows(self) -> list[Subflow]: ...
    @property
    def unsent_bytes(self) -> int: ...
    @property
    def window_room_bytes(self) -> int: ...

@final
class Ack:
    """An ACK, as a response to reordering sees it; numbers count from 1, the first byte of data."""

    @property
    def now_s(self) -> float: ...
    @property
    def before(self) -> int:
        """The left edge before it."""
    @property
    def number(self) -> int: ...
    @property
    def duplicate(self) -> bool: ...
    @property
    def recovering(self) -> bool:
        """Whether it is of a recovery or what follows a timeout."""
    @property
    def flight_bytes(self) -> int: ...
    @property
    def srtt_s(self) -> float | None: ...
    @property
    def echo_s(self) -> float | None:
        """The timestamp that it echoes: when the segment left that it answers."""
    @property
    def arrived_twice(self) -> tuple[int, int] | None:
        """What a D-SACK block reports: first number, and the one after the last."""

def check(description: str, /, methods: Callable[[str, str], object] | None = None) -> None:
    """Check a description without making the run; `methods` as for `run`."""

def run(
    description: str,
    /,
    trace: Callable[[str, bytes], object] | None = None,
    methods: Callable[[str, str], object] | None = None,
) -> str:
    """Make a run; the same description gives the same bytes on any machine.

    Args:
        description: of the run, as JSON.
        trace: takes what `trace` of the description asks for, piece by piece: the name of a file, and the
            bytes that follow in it.
        methods: makes a method of one's own, given what it is to be (`scheduler`, `congestion control`,
            `response to reordering`) and the name that the description has; called for each connection.

    Returns:
        The results, as JSON.

    Raises:
        InvalidDescription: it is not one.
        KeyboardInterrupt: the user interrupted the run.
        Exception: what a method of one's own raised.
    """
