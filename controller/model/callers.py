"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Caller:
    """A client, as its token names it.

    Attributes:
        name: The owner of the token; empty where none is needed.
        is_administrator: It may change everybody's flows.
        address: Where it calls from, as far as that is known.
    """

    name: str
    is_administrator: bool = False
    address: str = ""

    def __str__(self) -> str:
        who = self.name or "a client"
        return f"{who} at {self.address}" if self.address else who

    def facts(self) -> dict[str, str | None]:
        """Return who it is, for events and the log."""
        return {"by": self.name or None, "by_address": self.address or None}

    def may_change(self, owner: str) -> bool:
        """Return whether it may change a flow that this one requested."""
        return self.is_administrator or self.name == owner


UNRESTRICTED = Caller("", is_administrator=True)
"""Every client where no tokens are asked for."""

CONFIGURATION = Caller("the configuration", is_administrator=True)
"""Who has written the configuration file."""
