"""An extension for tests: protocols whose agent changes links in the midst of the run."""

from __future__ import annotations

from experiments import protocols
from experiments.engines.live.agent import Agent, Lab
from experiments.protocols.base import ProtocolSpec
from experiments.protocols.mstcp import Mstcp
from experiments.protocols.ospf import Ospf

CHANGES_AFTER_S = (1.0, 2.0)
CUT, SLOWED = "S0-S4", "S2-S3"


class ChangingAgent(Agent):
    """Cuts one link, and makes another one slower and longer."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._first_ns: int | None = None
        self._made = 0

    def sample(self, now_ns: int) -> None:
        """Make the changes that are due."""
        if self._first_ns is None:
            self._first_ns = now_ns
        if self._made == len(CHANGES_AFTER_S):
            return
        if now_ns - self._first_ns < (self.lab.plan.scenario.warm_up_s + CHANGES_AFTER_S[self._made]) * 1e9:
            return
        self._made += 1
        if self._made == 1:
            self.lab.emulation.set_link(CUT, up=False)
        else:
            self.lab.emulation.set_link(SLOWED, rate_bps=4e6, delay_us=2000)


class _Changing(ProtocolSpec):
    def agent(self, lab: Lab) -> Agent:
        """Return what changes the links."""
        return ChangingAgent(lab)


class ChangingOspf(_Changing, Ospf):
    """Plain TCP."""

    name = "changing-ospf"


class ChangingMstcp(_Changing, Mstcp):
    """MSTCP."""

    name = "changing-mstcp"


protocols.register(ChangingOspf())
protocols.register(ChangingMstcp())
