"""Addresses to listen on."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from controller.errors import ConfigError

_BACKLOG = 4096
"""Connections that wait to be accepted: one that finds no room is tried again after 1, 3 and 7 s."""


@dataclass(frozen=True)
class Address:
    """An IP address and a TCP port; port 0 lets the system choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `host:port` or `[IPv6]:port`.

        Raises:
            ValueError: it is no such address.
        """
        host, colon, port = text.rpartition(":")
        host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
        try:
            ipaddress.ip_address(host)
            if not colon or not 0 <= int(port) <= 65535:
                raise ValueError
        except ValueError:
            raise ValueError(f"{text!r} is not IP-ADDRESS:PORT, as 127.0.0.1:8080") from None
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def listen(setting: str, address: Address) -> tuple[socket.socket, Address]:
    """Return a listening TCP socket and the address that it has.

    Raises:
        ConfigError: naming the setting, if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it: else rules wait until a switch has acknowledged the probe before them.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(
            setting, f"cannot listen on {address}: {error.strerror}. End what uses it or choose another port."
        ) from None
    return listener, Address(address.host, listener.getsockname()[1])
