"""The protocols by name: each is one file, with its live agent, its part in the simulator and its look."""

from __future__ import annotations

# Each registers itself; reports and lists have them in this order.
from experiments.protocols import (  # isort: skip
    ospf,
    ecmp,
    mptcp,
    mptcp_dualhomed,
    mptcp_sdn,
    ppfs_group,
    ppfs,
    mstcp,
    quic,
    mpquic,
)
from experiments.protocols.base import PROTOCOLS, FlowPlan, ProtocolSpec, get, register, usual

__all__ = ["PROTOCOLS", "FlowPlan", "ProtocolSpec", "get", "register", "usual"]

_BUILT_IN = (ospf, ecmp, mptcp, mptcp_dualhomed, mptcp_sdn, ppfs_group, ppfs, mstcp, quic, mpquic)
