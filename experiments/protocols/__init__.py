"""The protocols by name."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.errors import UnknownName
from experiments.protocols.base import FlowPlan, ProtocolSpec
from experiments.protocols.ecmp import Ecmp
from experiments.protocols.mptcp import Mptcp, MptcpDualhomed, MptcpSdn
from experiments.protocols.mstcp import Mstcp
from experiments.protocols.ospf import Ospf
from experiments.protocols.ppfs import Ppfs, PpfsGroup

__all__ = ["PROTOCOLS", "FlowPlan", "ProtocolSpec", "get"]

_ALL: tuple[ProtocolSpec, ...] = (
    Ospf(),
    Ecmp(),
    Mptcp(),
    MptcpDualhomed(),
    MptcpSdn(),
    PpfsGroup(),
    Ppfs(),
    Mstcp(),
)
PROTOCOLS: Mapping[str, ProtocolSpec] = {protocol.name: protocol for protocol in _ALL}


def get(name: str) -> ProtocolSpec:
    """Return a protocol; UnknownName lists those that are there."""
    if name not in PROTOCOLS:
        raise UnknownName("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
