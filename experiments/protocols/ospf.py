"""Plain TCP over the shortest path by delay, as OSPF with the delay for its metric would route it."""

from __future__ import annotations

from experiments.protocols.base import ProtocolSpec, register
from experiments.protocols.plot_style import VERMILION


class Ospf(ProtocolSpec):
    """One TCP connection per flow on the controller's default routes; it asks the controller for nothing."""

    name = "ospf"
    description = "plain TCP on the shortest path by delay"
    plot_style = VERMILION


register(Ospf())
