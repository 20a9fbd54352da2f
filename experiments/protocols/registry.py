"""The protocols that were registered."""

from __future__ import annotations

from experiments.protocols.base import ProtocolSpec
from experiments.registry import Registry

PROTOCOLS: Registry[ProtocolSpec] = Registry("protocol")
register = PROTOCOLS.register
get = PROTOCOLS.find


def usual() -> list[str]:
    """Return the protocols that `all` stands for."""
    return [name for name, each in PROTOCOLS.items() if not each.is_named_alone]
