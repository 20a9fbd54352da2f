"""The path of a split flow's acknowledgements, which has to be one for all of its data."""

from __future__ import annotations

from controller.errors import InvalidRequest
from controller.state.state import State

SHORTEST = "shortest"
_REVERSE = "reverse:"


def ack_path(
    state: State, acks: str, source: str, destination: str, paths: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    """Return the path of the acknowledgements, from the destination of the data to its source.

    Args:
        state: The network; the links that are up must lead from one host to the other.
        acks: `shortest`, the path of least delay; or `reverse:<index>`, a path of the data backwards.
        source: Host that sends the data.
        destination: Host that sends the acknowledgements.
        paths: The paths of the data.

    Raises:
        InvalidRequest: there is no path with that index.
    """
    if acks == SHORTEST:
        return _shortest(state, destination, source)
    index = int(acks.removeprefix(_REVERSE))
    if index >= len(paths):
        last = len(paths) - 1
        raise InvalidRequest(
            "ack_path", f"{acks!r} is not a path of this flow; it has reverse:0 to reverse:{last}"
        )
    return tuple(reversed(paths[index]))


def _shortest(state: State, start: str, end: str) -> tuple[str, ...]:
    """Return the path that default routing takes, whatever the default routes do with ties."""
    path = state.paths.least_delay(start, end)
    assert path is not None, "it was checked that there is one"
    return path
