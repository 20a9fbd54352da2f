"""How the parts of a connection's transport are put together."""

from __future__ import annotations

import asyncio

from mstcp.errors import RemoteProtocolError
from mstcp.transport.ending import Ending
from mstcp.transport.health import Health
from mstcp.transport.lending import Lending
from mstcp.transport.membership import Membership
from mstcp.transport.receiving import Receiver
from mstcp.transport.sending import Sender
from mstcp.transport.state import Setup, State
from mstcp.transport.watching import Watching


class Parts:
    """The parts of one connection; what the receiver comes upon goes to those that it concerns."""

    def __init__(self, setup: Setup, transport: asyncio.Transport) -> None:
        state = self.state = State(setup)
        self.watching = Watching(
            state,
            on_readable=lambda stream: self.receiver.on_readable(stream),
            on_writable=lambda stream: self.sender.on_writable(stream),
        )
        self.sender = Sender(
            setup, state, self.watching, lose=self.lose, on_timer=self.take_events, on_room=self.changed
        )
        self.health = Health(state, pump=self.sender.pump)
        self.receiver = Receiver(state, self.watching, self.sender, self)
        self.ending = Ending(
            setup,
            state,
            self.watching,
            self.sender,
            self.receiver,
            self.health,
            transport,
            drop=self.drop,
            take_events=self.take_events,
        )
        self.membership = Membership(
            setup, state, self.watching, self.sender, self.receiver, self.health, finish=self.ending.finish
        )
        self.lending = Lending(state, self.watching, self.sender, self.receiver, self.membership, self.ending)

    def lose(self, stream: int, error: OSError) -> None:
        """Go on without a stream that broke, or end."""
        self.ending.lose(stream, error)

    def drop(self, stream: int, error: OSError | None) -> None:
        """Go on without a stream; its frames go over the others."""
        self.membership.drop(stream, error)

    def refuse(self, error: RemoteProtocolError) -> None:
        """End a connection whose peer broke the protocol."""
        self.ending.refuse(error)

    def fail(self, error: Exception) -> None:
        """End a connection whose protocol failed."""
        self.ending.fail(error)

    def finish(self, error: Exception | None, *, reset: bool) -> None:
        """Close the sockets and tell the application."""
        self.ending.finish(error, reset=reset)

    def close(self) -> None:
        """Send what is queued and the end, then close."""
        self.ending.close()

    def changed(self) -> None:
        """Tell threads that there may be bytes, or room."""
        self.lending.changed()

    def take_events(self) -> None:
        """Do what the core says has happened."""
        self.membership.take_events()
