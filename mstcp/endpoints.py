"""`HOST:PORT` and lists of allowed destinations, as the commands take them."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Destination:
    """Where to connect to.

    Attributes:
        host: Name or address.
        port: TCP port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_endpoint(text: str, *, default_host: str | None = None) -> Destination:
    """Return what `HOST:PORT`, `[V6]:PORT` or, with a default host, `PORT` or `:PORT` stands for.

    Raises:
        ValueError: It is none of these; the sentence says so.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: write an IPv6 address in brackets, as [::1]:{port}")
    if not host and default_host is not None:
        host = default_host
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        wanted = "HOST:PORT" if default_host is None else "[HOST:]PORT"
        raise ValueError(f"{text!r} is not {wanted} with a port of 1 to 65535")
    del colon
    return Destination(host, int(port))


def parse_endpoints(text: str) -> tuple[str, ...]:
    """Return each `HOST:PORT` or `[V6]:PORT` of a list with commas.

    Raises:
        ValueError: One is neither; the sentence says so.
    """
    endpoints = tuple(part.strip() for part in text.split(","))
    for each in endpoints:
        parse_endpoint(each)
    return endpoints


@dataclass(frozen=True)
class Rule:
    """Destinations: a network, and a port or all of them."""

    network: ipaddress.IPv4Network | ipaddress.IPv6Network
    port: int | None

    def fits(self, address: str, port: int) -> bool:
        """Return whether an address and port are meant."""
        return plain_address(address) in self.network and self.port in (None, port)

    def has_loopback(self) -> bool:
        """Return whether some of them are this host's loopback."""
        loopback = ipaddress.ip_network("127.0.0.0/8" if self.network.version == 4 else "::1/128")
        return self.network.overlaps(loopback)


def parse_rule(text: str) -> Rule:
    """Return the rule that `ADDRESS[/BITS][:PORT]` stands for; `*` for the port is all of them.

    Raises:
        ValueError: It is none.
    """
    network, port = text, "*"
    if text.startswith("["):
        inner, _, after = text[1:].partition("]")
        bits, colon, port = after.partition(":")
        network, port = inner + bits, port if colon else "*"
    elif text.count(":") == 1:
        network, _, port = text.partition(":")
    try:
        if port != "*" and not 0 < int(port) < 1 << 16:
            raise ValueError
        return Rule(ipaddress.ip_network(network, strict=False), None if port == "*" else int(port))
    except ValueError:
        raise ValueError(
            f"{text!r} is not ADDRESS[/BITS][:PORT], as 10.0.0.0/8:22 or [fd00::]/8 or 10.0.0.3"
        ) from None


def plain_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address, that of IPv4 for one that is mapped to IPv6."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return mapped or parsed


def is_own_address(address: str) -> bool:
    """Return whether an address is this host's."""
    parsed = plain_address(address)
    if parsed.is_loopback:
        return True
    if parsed.is_unspecified or parsed.is_multicast:
        return False
    family = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM) as probe, contextlib.suppress(OSError):
        probe.bind((str(parsed), 0))
        return True
    return False


def check_readable(file: str) -> None:
    """Raise an OSError that has the file's name: those of `ssl` do not."""
    with Path(file).open("rb"):
        pass
