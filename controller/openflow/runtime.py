"""Starts os-ken: its hub, our application, and the sockets that switches connect to.

os-ken 4.2.2 has no command of its own any more, so its AppManager is used directly. Threads of its native hub
that keep a stopping process alive are daemons here, and its connections are replaced (`openflow.connection`),
with their threads (`openflow.reactor`).
Its link discovery is not used, as a pause of a second ends its probes for ever (docs/decisions.md); ours is
in `controller.state.discovery`.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from typing import Any

from os_ken import cfg
from os_ken.base.app_manager import AppManager
from os_ken.controller.ofp_handler import OFPHandler

from controller.model.messages import DatapathMessage
from controller.openflow.app import ControllerApp
from controller.openflow.connection import Connection
from controller.openflow.reactor import Reactor
from controller.openflow.tls_socket import TlsSocket

__all__ = ["OpenFlowRuntime"]

LOG = logging.getLogger("controller.openflow")

_DRAIN_S = 0.5
"""What is still to be sent to a switch may take so long once the controller stops."""


_MAX_HANDSHAKES = 64
_HANDSHAKE_S = 5.0
"""So many switches may be in TLS's handshake at once, each for so long."""


class _Handler(OFPHandler):  # type: ignore[misc]  # os-ken has no type information
    """OpenFlow's handshake without os-ken's own listener, which tells nobody when its address is in use."""

    def start(self) -> None:
        super(OFPHandler, self).start()


class OpenFlowRuntime:
    """os-ken, serving switches on listening sockets.

    Args:
        listeners: Bound sockets, listening.
        post: Puts events in the controller's queue, side by side.
        lldp_key: What probes are signed with.
        tls: Protects switches' connections; None: they are not.
        may_be: Whether the switch whose certificate has a common name may have a datapath id.
        fail: Called with a sentence when no more switches can be served.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        post: Callable[..., None],
        lldp_key: bytes,
        tls: ssl.SSLContext | None = None,
        may_be: Callable[[str, int], bool] = lambda *_: True,
        fail: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._lldp_key = lldp_key
        self._tls = tls
        self._may_be = may_be
        self._fail = fail
        self._handshakes = threading.BoundedSemaphore(_MAX_HANDSHAKES)
        self._listeners = listeners
        self._post = post
        self._app: ControllerApp | None = None
        self._stopping = False
        self._reactor = Reactor(self._hand_over)

    def start(self) -> None:
        """Start everything; returns when switches are served."""
        # Threads inherit being daemons; os-ken's cannot be ended, so none may keep the process alive.
        starter = threading.Thread(target=self._start, name="osken-starter", daemon=True)
        starter.start()
        starter.join()
        if self._app is None:
            raise RuntimeError("os-ken did not start; the log says why")

    def send(self, message: DatapathMessage) -> None:
        """Carry out a message of the core, at the latest with `flush`."""
        if self._app is not None:
            self._app.send(message)

    def flush(self) -> None:
        """Carry out all messages."""
        if self._app is not None:
            self._app.flush()

    def _hand_over(self) -> None:
        if self._app is not None:
            self._app.hand_over()

    def stop(self) -> None:
        """Take no more switches and end the connections."""
        self._stopping = True
        for listener in self._listeners:
            # Closing alone does not wake a thread that is in accept().
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self._reactor.stop(_DRAIN_S)

    def _start(self) -> None:
        cfg.CONF([], project="os_ken")
        manager = AppManager.get_instance()
        apps: list[Any] = [
            manager.instantiate(_Handler),
            manager.instantiate(ControllerApp, self._post, self._lldp_key, self._may_be),
        ]
        for app in apps:
            app.start()
        self._app = apps[-1]
        self._reactor.start()
        for listener in self._listeners:
            # Not of os-ken's hub, which swallows what ends a thread.
            threading.Thread(target=self._accept, args=(listener,), name="controller-accept").start()

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping:
            try:
                connected, address = listener.accept()
            except OSError as error:
                if not self._stopping:
                    self._fail(f"no more switches are accepted on {listener.getsockname()}: {error}")
                return
            LOG.debug("a switch connects from %s", address)
            if self._tls is None:
                self._serve(connected, address)
            elif self._handshakes.acquire(blocking=False):
                arguments = (self._tls, connected, address)
                threading.Thread(target=self._shake_hands, args=arguments, name="controller-tls").start()
            else:
                LOG.warning("%s is sent away: %d switches are in their handshake", address, _MAX_HANDSHAKES)
                connected.close()

    def _shake_hands(self, tls: ssl.SSLContext, connected: socket.socket, address: object) -> None:
        """Protect a connection and serve it; one whose other side does not go along is closed."""
        try:
            connected.settimeout(_HANDSHAKE_S)
            protected = tls.wrap_socket(connected, server_side=True)
            self._serve(TlsSocket(protected), address, _common_name(protected))
        except OSError as error:  # TLS's errors are such too
            LOG.warning("the switch at %s is not served: %s", address, error)
            connected.close()
        finally:
            self._handshakes.release()

    def _serve(
        self, connected: socket.socket | TlsSocket, address: object, certified: str | None = None
    ) -> None:
        assert self._app is not None
        connection = Connection(connected, address, self._app.take, self._reactor.want_write)
        connection.certified = certified
        self._reactor.add(connection)


def _common_name(connected: ssl.SSLSocket) -> str | None:
    """Return the common name in the other side's certificate; None where none is asked for."""
    certificate: dict[str, Any] = connected.getpeercert() or {}
    for part in certificate.get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return "" if certificate else None
