"""Whether connections used the TCP that a scenario asks for, by what the kernel says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.engines.live.socket_state import SocketState
from experiments.model.settings import Tcp

_OPTIONS = {"timestamps": "ts", "sack": "sack"}
"""What both ends agree on when they connect, and `ss` shows. The other settings are read back as sysctls."""


def mismatches(tcp: Tcp, congestion_control: str, flow: str, states: Sequence[SocketState]) -> list[str]:
    """Return a sentence for each thing that a flow's connections or subflows did otherwise than asked."""
    reasons = [
        f"flow {flow} sent with congestion control {state.congestion_control} where "
        f"{congestion_control} was asked for"
        for state in states
        if state.congestion_control != congestion_control
    ]
    for name, option in _OPTIONS.items():
        asked = tcp.response.get(name, getattr(tcp, name))
        used = {option in state.options for state in states if state.is_open}
        if asked is not None and used - {asked}:
            actual = "without" if asked else "with"
            reasons.append(f"flow {flow} sent {actual} tcp_{name}, which was set to {int(asked)}")
    return reasons


def unverified(ends: Mapping[str, tuple[str, str]], seen: Mapping[str, Sequence[SocketState]]) -> list[str]:
    """Return the flows of which no connection was there when the kernel was asked."""
    return [name for name in ends if not seen.get(name)]


def not_vouched_for(
    ends: Mapping[str, tuple[str, str]], seen: Mapping[str, Sequence[SocketState]]
) -> list[str]:
    """Return a sentence for each pair of hosts of which not one connection was seen.

    A connection that was missed is taken to be like those of the same protocol between the same hosts.
    """
    missed: dict[tuple[str, str], list[str]] = {}
    for name in unverified(ends, seen):
        missed.setdefault(ends[name], []).append(name)
    vouched = {ends[name] for name, states in seen.items() if states}
    return [
        f"no connection from {src} to {dst} was there when the kernel was asked, so nothing shows what flow "
        f"{', '.join(names)} sent with"
        for (src, dst), names in missed.items()
        if (src, dst) not in vouched
    ]
