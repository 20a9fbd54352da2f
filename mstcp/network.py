"""This host's network: streams from each of its interfaces, and connections that hear when it changes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mstcp.errors import LocalProtocolError
from mstcp.streams import StreamSpec, check_specs

_RTMGRP_IPV4_IFADDR, _RTMGRP_IPV6_IFADDR = 0x10, 0x100
"""Groups of rtnetlink(7): addresses that come and go."""
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Interfaces:
    """A stream from each address of this host that may lead to the peer, also as addresses come and go.

    Each stream leaves by the interface that has its address, whatever the routing table prefers.

    Attributes:
        specs: By name of the interface: `rate_bps` and `priority` of its streams, where they are not the
            default. `Interfaces({"wwan0": StreamSpec(priority=1)})` keeps wwan0 for when all others fail.
    """

    specs: Mapping[str, StreamSpec] = field(default_factory=dict)

    def check(self) -> None:
        """Check the specs; LocalProtocolError if they say more than rate and priority."""
        for name, spec in self.specs.items():
            check_specs([spec])
            if spec != StreamSpec(rate_bps=spec.rate_bps, priority=spec.priority):
                raise LocalProtocolError(f"a stream of interface {name} has rate_bps and priority alone")


class Follower(Protocol):
    """Receives changes of the host's addresses."""

    def network_changed(self) -> None:
        """Handle a change."""


class _Watch:
    """Tells followers in one event loop that the host's addresses have changed."""

    def __init__(self) -> None:
        self.followers: weakref.WeakSet[Follower] = weakref.WeakSet()
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.setblocking(False)
            sock.bind((0, _RTMGRP_IPV4_IFADDR | _RTMGRP_IPV6_IFADDR))
            self.descriptor = sock.detach()
        weakref.finalize(self, os.close, self.descriptor)

    def on_readable(self) -> None:
        """Read all that is there, and tell."""
        with contextlib.suppress(OSError):  # nothing more, or more than the socket could hold
            while os.read(self.descriptor, _READ_BYTES):
                pass
        for follower in list(self.followers):
            follower.network_changed()


_watches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch | None] = weakref.WeakKeyDictionary()


def follow(loop: asyncio.AbstractEventLoop, follower: Follower) -> None:
    """Notify a follower of changes while it lives; never on systems without netlink."""
    if loop not in _watches:
        _watches[loop] = None
        with contextlib.suppress(OSError, AttributeError):
            watch = _watches[loop] = _Watch()
            loop.add_reader(watch.descriptor, watch.on_readable)
    if (known := _watches[loop]) is not None:
        known.followers.add(follower)
