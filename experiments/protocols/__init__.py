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

__all__ = ["OTHER_NETWORKS", "PROTOCOLS", "FlowPlan", "ProtocolSpec", "get"]

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

OTHER_NETWORKS: Mapping[str, str] = {
    MptcpDualhomed.name: (
        "its hosts have second interfaces, which is another network: not counted where protocols are ranked"
    )
}
"""Protocols whose results stand beside the others' and are not compared with them, and why."""


def get(name: str) -> ProtocolSpec:
    """Return a protocol; UnknownName lists those that are there."""
    if name not in PROTOCOLS:
        raise UnknownName("protocol", name, PROTOCOLS)
    return PROTOCOLS[name]
