"""How many connections a service takes, in all and from one address, so that nobody takes them all."""

from __future__ import annotations

import errno
import resource
import threading
from collections import Counter
from dataclasses import dataclass

_PASSING = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED, errno.EPROTO, errno.EINTR}
)
_MAX_FILES = 1 << 16
_OTHER_FILES = 64  # the store, libraries, selectors
_MAX_CLIENTS = 1024
_MAX_CLIENTS_OF_AN_ADDRESS = 128


class ConnectionLimits:
    """Counts connections; may be used by any thread."""

    def __init__(self, total: int, per_address: int) -> None:
        self.total = total
        self.per_address = per_address
        self._lock = threading.Lock()
        self._by_address: Counter[str] = Counter()
        self._taken = 0

    def take(self, address: str) -> str | None:
        """Count a connection; returns why it is one too many, as a part of a sentence, or None."""
        with self._lock:
            if self._taken >= self.total:
                return f"there are {self.total} connections already"
            if self._by_address[address] >= self.per_address:
                return f"this address has {self.per_address} connections already"
            self._taken += 1
            self._by_address[address] += 1
            return None

    def free(self, address: str) -> None:
        """Count a connection no more."""
        with self._lock:
            self._taken -= 1
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of each service; those of OpenFlow are for connections that are not admitted as a switch."""

    openflow: ConnectionLimits
    rest: ConnectionLimits
    grpc: ConnectionLimits

    @classmethod
    def of(cls, switches: int = 0, files: int = _MAX_FILES) -> ServiceLimits:
        """Return the limits for a number of switches and open files: together they leave some over."""
        left = max(0, files - _OTHER_FILES - switches)
        unknown = min(4 * switches + 64, left // 3)
        clients = min(_MAX_CLIENTS, left // 3)
        per_address = min(_MAX_CLIENTS_OF_AN_ADDRESS, max(1, clients // 2))
        return cls(
            openflow=ConnectionLimits(unknown, min(switches + 16, max(1, unknown // 2))),
            rest=ConnectionLimits(clients, per_address),
            grpc=ConnectionLimits(clients, per_address),
        )


def is_passing(error: OSError) -> bool:
    """Return whether accepting a connection fails for now (no file descriptors left), and not for good."""
    return error.errno in _PASSING


def raise_file_limit() -> int:
    """Let the process have as many open files as it may, and return how many: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
