"""Which way of making links this machine has."""

from __future__ import annotations

from typing import Literal

from topologies.emulated import EmulatorBackend
from topologies.errors import EmulationError, LinkNotFaithful
from topologies.netem import NetemBackend
from topologies.wires import LinkBackend

BackendName = Literal["auto", "netem", "emulator"]


def choose_backend(asked: BackendName, seed: int, frame_bytes: int) -> LinkBackend:
    """Return a backend, ready to make links.

    Args:
        asked: `netem`, `emulator`, or `auto`: netem where the kernel has it.
        seed: of loss and jitter.
        frame_bytes: size of a full Ethernet frame.

    Raises:
        LinkNotFaithful: the machine has not what was asked for, or, for `auto`, neither.
    """
    if asked == "netem":
        return NetemBackend(frame_bytes)
    if asked == "emulator":
        return EmulatorBackend(seed)
    try:
        return NetemBackend(frame_bytes)
    except LinkNotFaithful as no_netem:
        try:
            return EmulatorBackend(seed)
        except EmulationError as no_emulator:
            raise LinkNotFaithful("all links", "auto", f"{no_netem}; {no_emulator}") from None
