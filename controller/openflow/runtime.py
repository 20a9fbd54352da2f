"""Serves switches on listening sockets: accepts them, protects them by TLS, and reads them by one thread."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from controller.connection_limits import ConnectionLimits, is_passing
from controller.logs import SparingLog
from controller.openflow.connection import Connection
from controller.openflow.reactor import Reactor
from controller.openflow.session import Leadership, ReplicaLeadership
from controller.openflow.switches import Switches

LOG = logging.getLogger("controller.openflow")

_DRAIN_S = 0.5
"""Time to send what is left to a switch once the controller stops."""

_ACCEPT_PAUSE_S = 0.1
"""Pause after a connection could not be accepted."""

_MAX_HANDSHAKES = 64
_HANDSHAKE_S = 5.0
"""Switches that may be in TLS's handshake at once, and for how long each."""


class OpenFlowRuntime:
    """All switches' connections.

    The limits are on connections that are not admitted as a switch yet. `may_be` says whether the switch
    whose certificate has a common name may have a datapath id; `fail` is called with a sentence when no more
    switches can be served.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        post: Callable[..., None],
        lldp_key: bytes,
        leadership: Leadership,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None,
        may_be: Callable[[str, int], bool],
        fail: Callable[[str], None],
    ) -> None:
        self.tls = tls
        self._fail = fail
        self._limits = limits
        self._handshakes = threading.BoundedSemaphore(_MAX_HANDSHAKES)
        self._listeners = listeners
        self._stopping = False
        self._log = SparingLog(LOG)
        self.switches = Switches(post, lldp_key, leadership, may_be)
        self._reactor = Reactor(
            self.switches.opened, self.switches.closed, self.switches.hand_over, self.switches.tick
        )

    def start(self) -> None:
        """Begin to serve."""
        self._reactor.start()
        for listener in self._listeners:
            threading.Thread(
                target=self._accept, args=(listener,), name="controller-accept", daemon=True
            ).start()

    def lead(self, leadership: ReplicaLeadership, epoch: int) -> None:
        """Become the master of all switches, as the replica that leads; 0: of none."""

        def change() -> None:
            leadership.epoch = epoch
            if epoch:
                self.switches.lead()
            else:
                self.switches.follow()

        self._reactor.call(change)

    def stop(self) -> None:
        """Take no more switches and end the connections."""
        self._stopping = True
        for listener in self._listeners:
            # Closing alone does not wake a thread that is in accept().
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.switches.release()
        self._reactor.stop(_DRAIN_S)

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping:
            try:
                connected, address = listener.accept()
            except OSError as error:
                if self._stopping:
                    return
                if not is_passing(error):
                    self._fail(f"no more switches are accepted on {listener.getsockname()}: {error}")
                    return
                self._log.warning("accept", "no switch can be accepted for now: %s", error.strerror)
                time.sleep(_ACCEPT_PAUSE_S)
                continue
            refused = self._limits.take(address[0])
            if refused is not None:
                self._log.warning("limit", "the switch at %s is disconnected: %s", address, refused)
                connected.close()
            else:
                self._begin(connected, address)

    def _begin(self, connected: socket.socket, address: Any) -> None:
        if self.tls is None:
            self._serve(connected, address, None)
        elif self._handshakes.acquire(blocking=False):
            arguments = (self.tls, connected, address)
            threading.Thread(
                target=self._shake_hands, args=arguments, name="controller-tls", daemon=True
            ).start()
        else:
            self._limits.free(address[0])
            self._log.warning(
                "handshakes",
                "%s is disconnected: %d switches are in their handshake",
                address,
                _MAX_HANDSHAKES,
            )
            connected.close()

    def _shake_hands(self, tls: ssl.SSLContext, connected: socket.socket, address: Any) -> None:
        """Protect a connection and serve it; one whose other side does not go along is closed."""
        try:
            connected.settimeout(_HANDSHAKE_S)
            protected = tls.wrap_socket(connected, server_side=True)
            self._serve(protected, address, _common_name(protected))
        except OSError as error:  # TLS's errors are such too
            self._limits.free(address[0])
            self._log.warning("TLS", "the switch at %s is not served: %s", address, error)
            connected.close()
        finally:
            self._handshakes.release()

    def _serve(self, connected: socket.socket, address: Any, certified: str | None) -> None:
        connection = Connection(
            connected,
            address,
            self.switches.received,
            self._reactor.want_write,
            certified,
            lambda: self._limits.free(address[0]),
        )
        self._reactor.add(connection)


def _common_name(connected: ssl.SSLSocket) -> str | None:
    """Return the common name in the other side's certificate; None where none is asked for."""
    certificate: dict[str, Any] = connected.getpeercert() or {}
    for part in certificate.get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return "" if certificate else None
