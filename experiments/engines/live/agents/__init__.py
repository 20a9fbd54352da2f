"""The agents by protocol."""

from __future__ import annotations

from experiments import protocols
from experiments.engines.live.agents.base import Agent, Lab
from experiments.engines.live.agents.dualhomed import DualhomedAgent
from experiments.engines.live.agents.ecmp import EcmpAgent
from experiments.engines.live.agents.mptcp import MptcpAgent
from experiments.engines.live.agents.split import SplitAgent
from experiments.protocols.ecmp import Ecmp
from experiments.protocols.mptcp import Mptcp, MptcpDualhomed
from experiments.protocols.ppfs import Ppfs

__all__ = ["Agent", "Lab", "agent_for"]


def agent_for(lab: Lab) -> Agent:
    """Return the agent of the protocol that is run."""
    protocol = protocols.get(lab.plan.protocol)
    if isinstance(protocol, MptcpDualhomed):
        return DualhomedAgent(lab, protocol)
    if isinstance(protocol, Mptcp):
        return MptcpAgent(lab, protocol)
    if isinstance(protocol, Ppfs):
        return SplitAgent(lab, protocol)
    if isinstance(protocol, Ecmp):
        return EcmpAgent(lab)
    return Agent(lab)
