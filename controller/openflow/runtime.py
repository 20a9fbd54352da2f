"""Starts os-ken: its hub, our application, and the sockets that switches connect to.

os-ken 4.2.2 has no command of its own any more, so its AppManager is used directly. Threads of its native hub
that keep a stopping process alive are daemons here, and its connections are replaced (`openflow.connection`),
with their threads (`openflow.reactor`).
Its link discovery is not used, as a pause of a second ends its probes for ever (docs/decisions.md); ours is
in `controller.network.discovery`.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from os_ken import cfg
from os_ken.base.app_manager import AppManager
from os_ken.controller.ofp_handler import OFPHandler
from os_ken.lib import hub

from controller.core.events import Event
from controller.core.messages import DatapathMessage
from controller.openflow.app import ControllerApp
from controller.openflow.connection import Connection
from controller.openflow.reactor import Reactor

__all__ = ["OpenFlowRuntime"]

LOG = logging.getLogger("controller.openflow")

_DRAIN_S = 0.5
"""What is still to be sent to a switch may take so long once the controller stops."""


class _Handler(OFPHandler):  # type: ignore[misc]  # os-ken has no type information
    """OpenFlow's handshake without os-ken's own listener, which tells nobody when its address is in use."""

    def start(self) -> None:
        super(OFPHandler, self).start()


class OpenFlowRuntime:
    """os-ken, serving switches on listening sockets.

    Args:
        listeners: Bound sockets, listening.
        post: Puts an event in the controller's queue.
        lldp_key: What probes are signed with.
    """

    def __init__(
        self, listeners: Sequence[socket.socket], post: Callable[[Event], None], lldp_key: bytes
    ) -> None:
        self._lldp_key = lldp_key
        self._listeners = listeners
        self._post = post
        self._app: ControllerApp | None = None
        self._stopping = False
        self._reactor = Reactor()

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
            manager.instantiate(ControllerApp, self._post, self._lldp_key),
        ]
        for app in apps:
            app.start()
        self._app = apps[-1]
        self._reactor.start()
        for listener in self._listeners:
            hub.spawn(self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping:
            try:
                connected, address = listener.accept()
            except OSError as error:
                if not self._stopping:
                    LOG.error("no more switches are accepted on %s: %s", listener, error)
                return
            LOG.debug("a switch connects from %s", address)
            assert self._app is not None
            self._reactor.add(Connection(connected, address, self._app.take, self._reactor.want_write))
