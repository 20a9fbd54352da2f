"""Brings DHCP messages of hosts to the servers that the topology file names, and the answers back.

Frames go from port to port as they are: hosts and servers are on one network, whose switches flood nothing.
"""

from __future__ import annotations

from controller.decide.component import Component, Context
from controller.model.dhcp import DhcpMessage
from controller.model.journal import JournaledDict
from controller.state.hosts import Host

_TIMEOUT_S = 30.0
"""Time for a server to answer."""

_MAX_CLIENTS = 1024
"""Clients that wait for answers, at most; others ask again."""


class DhcpRelay(Component):
    """Knows where clients are that have asked."""

    def __init__(self, shared: Context) -> None:
        super().__init__(shared)
        # By MAC address: switch, port and until when, the first that asked first.
        self._clients: JournaledDict[str, tuple[str, int, float]] = JournaledDict()

    def arrived(self, switch: str, port: int, message: DhcpMessage, frame: bytes, now: float) -> None:
        """Pass a message on that has come in at a port that hosts may be behind."""
        servers = self._servers()
        is_servers = (switch, port) in [(server.switch, server.port) for server in servers]
        if message.is_request and not is_servers:
            for mac in [mac for mac, (_, _, until) in self._clients.items() if until <= now]:
                del self._clients[mac]
            if len(self._clients) < _MAX_CLIENTS or message.client_mac in self._clients:
                self._clients[message.client_mac] = switch, port, now + _TIMEOUT_S
                for server in servers:
                    self._send_frame(server.switch, server.port, frame)
        elif is_servers and not message.is_request and message.client_mac in self._clients:
            at, out, until = self._clients[message.client_mac]
            if until > now:
                self._send_frame(at, out, frame)

    def _servers(self) -> list[Host]:
        found = map(self._state.hosts.find, self._state.live.network.dhcp_servers)
        return [host for host in found if host is not None and self._state.hosts.is_reachable(host)]
