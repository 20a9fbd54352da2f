"""The live engine as it runs in the virtual kernel."""

from __future__ import annotations

from experiments.engines.base import Abilities, Clock
from experiments.engines.live.engine import LiveEngine


class VirtualEngine(LiveEngine):
    """Mininet, Open vSwitch, controller and kernel TCP, as the live engine has them, in virtual time."""

    name = "virtual"
    description = "the live engine in virtual time, in a kernel of its own: the same bytes on every machine"
    abilities = Abilities(clock=Clock.VIRTUAL, protocols=None, drains=True)
