"""Which way of making links this machine has."""

from __future__ import annotations

from typing import Literal

from topologies.emulated import EmulatorBackend
from topologies.errors import EmulationError, LinkNotFaithful
from topologies.model import Network
from topologies.netem import NetemBackend
from topologies.wires import LinkBackend

BackendName = Literal["auto", "netem", "emulator"]


def choose_backend(
    asked: BackendName, network: Network, seed: int, frame_bytes: int, *, exact_clock: bool = False
) -> LinkBackend:
    """Return a backend, ready to make links.

    Args:
        asked: `netem`, `emulator`, or `auto`: netem where the kernel has it, and the network no Wi-Fi.
        network: whose links it will make.
        seed: of loss and jitter.
        frame_bytes: size of a full Ethernet frame.
        exact_clock: whether sleeps end on time, as in virtual time.

    Raises:
        LinkNotFaithful: the machine has not what was asked for, or, for `auto`, neither.
    """
    wireless = next((link for link in network.links if link.wifi is not None), None)
    if asked == "netem" and wireless is not None:
        raise LinkNotFaithful(wireless.name, asked, "netem has no Wi-Fi: leave link_backend at auto")
    if asked == "netem":
        return NetemBackend(frame_bytes)
    if asked == "emulator" or wireless is not None:
        return EmulatorBackend(seed, exact_clock)
    try:
        return NetemBackend(frame_bytes)
    except LinkNotFaithful as no_netem:
        try:
            return EmulatorBackend(seed, exact_clock)
        except EmulationError as no_emulator:
            raise LinkNotFaithful("all links", "auto", f"{no_netem}; {no_emulator}") from None
