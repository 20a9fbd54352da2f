"""A protocol from outside the package that changes links: one by the lab, one past it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from experiments.engines.live.agent import Agent, Lab
from experiments.protocols import ProtocolSpec, register
from experiments.protocols.plot_style import YELLOW


class MeddlingAgent(Agent):
    """Changes `s1-s2` by the lab, and an interface of `s2-s3` by tc."""

    def connected(self) -> Mapping[str, float]:
        """Change both."""
        self.lab.emulation.set_link("s1-s2", delay_us=2000)
        (port,) = (
            arc.tail_port for arc in self.lab.plan.network.arcs() if (arc.tail, arc.head) == ("s2", "s3")
        )
        change = ["tc", "qdisc", "change", "dev", f"s2-eth{port}", "root", "netem", "delay", "9ms"]
        subprocess.run(change, check=True)
        return super().connected()


class Meddling(ProtocolSpec):
    """Plain TCP."""

    name = "meddling"
    description = "plain TCP over links that change"
    plot_style = YELLOW

    def agent(self, lab: Lab) -> Agent:
        """Return what changes links."""
        return MeddlingAgent(lab)


register(Meddling())
