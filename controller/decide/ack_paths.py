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

    `acks` is `shortest`, the path of least delay, or `reverse:<index>`, one of `paths` of the data backwards.
    The links that are up must lead from one host to the other.

    Raises:
        InvalidRequest: there is no path with that index.
    """
    if acks == SHORTEST:  # as default routing goes, whatever the default routes do with ties
        path = state.paths.least_delay(destination, source)
        assert path is not None, "it was checked that there is one"
        return path
    index = int(acks.removeprefix(_REVERSE))
    if index >= len(paths):
        last = len(paths) - 1
        raise InvalidRequest(
            "ack_path", f"{acks!r} is not a path of this flow; it has reverse:0 to reverse:{last}"
        )
    return tuple(reversed(paths[index]))
