"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ANYBODY", "Caller"]


@dataclass(frozen=True)
class Caller:
    """A client, as its token names it.

    Attributes:
        name: The owner of the token; empty where none is needed.
        is_administrator: It may change everybody's flows.
    """

    name: str
    is_administrator: bool = False

    def may_change(self, owner: str) -> bool:
        """Return whether it may change a flow that this one requested."""
        return self.is_administrator or self.name == owner


ANYBODY = Caller("", is_administrator=True)
"""Every client where no tokens are asked for."""
