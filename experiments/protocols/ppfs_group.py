"""PPFS with what stock Open vSwitch offers: a select group with weights, so that the difference is seen."""

from __future__ import annotations

from typing import Literal

from experiments.protocols.base import register
from experiments.protocols.plot_style import SKY
from experiments.protocols.ppfs import Ppfs


class PpfsGroup(Ppfs):
    """The split by a select group, which chooses by connection and not by packet."""

    name = "ppfs-group"
    description = "plain TCP over a weighted select group of the ingress switch, as stock Open vSwitch splits"
    plot_style = SKY
    splitting: Literal["packets", "group"] = "group"
    programs_ports = False
    is_simulated = False


register(PpfsGroup())
