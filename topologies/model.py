"""Networks as data: nodes, links with rate, delay and queue, checked against a schema.

A `Network` says what a network *is*; nothing here knows Mininet, Open vSwitch or a solver. A link is alike in
both directions unless it says otherwise; `Network.arcs()` gives the directed view that routing works on.

Numbering is deterministic, so that the builder, the controller and the tests agree without talking to each
other: switch `i` (in file order, from 0) has datapath id `i + 1`; the ports of a node are numbered from 1 in
the order in which the file lists its links; host `i` has address number `i + 1` of each of `DATA_NETWORKS`
(10.0.0.1 and fd00::1 are the first) and a MAC made from that of IPv4, unless the file gives it others.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from topologies.wireless import WirelessLink

NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_]{0,31}$"
IpVersion = Literal[4, 6]
DATA_NETWORKS: dict[IpVersion, ipaddress.IPv4Network | ipaddress.IPv6Network] = {
    4: ipaddress.IPv4Network("10.0.0.0/16"),
    6: ipaddress.IPv6Network("fd00::/64"),
}

Name = Annotated[str, Field(pattern=NAME_PATTERN)]


@lru_cache(maxsize=1 << 12)  # asked for each request and each message of a host
def is_host_address(text: str) -> bool:
    """Return whether a text is an address that one host of a network of many links can have.

    So no link-local one of IPv6, which every host has beside its own.
    """
    if ":" not in text and not text[:1].isdigit():  # a name, as it mostly is
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_multicast or address.is_reserved or address.is_loopback:
        return False
    return int(address) >> 24 > 0 if address.version == 4 else not address.is_link_local


def ip_version(address: str) -> IpVersion:
    """Return the version of an IP address."""
    return 6 if ":" in address else 4


PortName = (
    Annotated[int, Field(ge=1, le=0xFFFF_FF00, strict=True)]
    | Annotated[str, Field(min_length=1, max_length=15)]
)
"""An OpenFlow port number, or the name of a port as the switch tells it (for Open vSwitch, an interface)."""


class Node(BaseModel):
    """A host or a switch; `x` and `y` place it on drawings (arbitrary units, y upwards).

    A switch that has a `datapath_id` is not numbered by its place in the file, nor are its ports: they are
    what its links say, or are learned (`Link.ports`). A host that is not built by this project has the `ip`
    (of IPv4), the `ip6` and the `mac` that it was given; without a `mac`, the controller learns it.

    One host may be the `gateway`: the others reach by it what is no host of the network. DHCP requests go to
    hosts that are a `dhcp_server`. What a host with a `vlan` sends and gets has that tag (IEEE 802.1Q); its
    other frames are not its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    kind: Literal["host", "switch"]
    x: float | None = None
    y: float | None = None
    datapath_id: int | None = Field(default=None, ge=1, lt=1 << 64)
    ip: str | None = None
    ip6: str | None = None
    mac: str | None = Field(default=None, pattern=r"^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$")

    gateway: bool = False
    dhcp_server: bool = False
    vlan: int | None = Field(default=None, ge=1, le=4094)

    @field_validator("ip", "ip6")
    @classmethod
    def _is_host_address(cls, text: str | None, field: ValidationInfo) -> str | None:
        version = 4 if field.field_name == "ip" else 6
        if text is None:
            return None
        if not is_host_address(text) or ip_version(text) != version:
            raise ValueError(f"{text!r} is no IPv{version} address that a host can have")
        return str(ipaddress.ip_address(text))

    @model_validator(mode="after")
    def _has_what_its_kind_has(self) -> Node:
        if self.datapath_id is not None and self.kind == "host":
            raise ValueError("a host has no datapath_id")
        is_host = self.has_given_address or self.gateway or self.dhcp_server or self.vlan is not None
        if self.kind == "switch" and is_host:
            raise ValueError("a switch has no ip, ip6, mac or vlan, and is no gateway and no dhcp_server")
        return self

    @property
    def has_given_address(self) -> bool:
        """Whether the file says an address of it."""
        return (self.ip, self.ip6, self.mac) != (None, None, None)

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # What reads nodes (the simulator, older documents) knows no fields of few nodes.
        data: dict[str, Any] = dump(self)
        for name in ("datapath_id", "ip", "ip6", "mac", "gateway", "dhcp_server", "vlan"):
            if not data.get(name):
                data.pop(name, None)
        return data


class Link(WirelessLink):
    """A full-duplex link, alike in both directions unless the `reverse_` fields or `one_way` say otherwise.

    `rate_bps` counts whole Ethernet frames without preamble and checksum (a 536-byte TCP segment without
    options is 590 bytes). `queue_packets` and `queue_bytes` limit the queue in front of the link; None means
    unlimited.

    `reverse_rate_bps` and `reverse_delay_us` are those of the direction from the second end to the first;
    None means the same as the other way. A link that is `one_way` leads from the first end to the second
    alone. `parallel` numbers the links between the same ends, from 0. Routing knows such links; emulation
    and simulation do not (`topologies.check.check_symmetric`).

    `ports` are those of the switches at its ends, by number or name, for networks that are not built by this
    project; empty (or null in JSON) at a host, and where the controller shall learn it (from ports that are
    called as the neighbour, and from discovery).

    A link with `wifi` is a wireless one (`topologies.wireless`): its rate is that of the physical layer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ends: tuple[Name, Name]
    rate_bps: float = Field(gt=0, le=1e15, allow_inf_nan=False)
    delay_us: float = Field(ge=0, le=10e6, allow_inf_nan=False)
    queue_packets: int | None = Field(default=None, ge=1)
    queue_bytes: int | None = Field(default=None, ge=1)
    loss: float = Field(default=0.0, ge=0, lt=1)
    jitter_us: float = Field(default=0.0, ge=0, le=10e6)
    reverse_rate_bps: float | None = Field(default=None, gt=0, le=1e15, allow_inf_nan=False)
    reverse_delay_us: float | None = Field(default=None, ge=0, le=10e6, allow_inf_nan=False)
    one_way: bool = False
    parallel: int = Field(default=0, ge=0)
    ports: tuple[PortName | None, PortName | None] | None = None

    @field_validator("ports", mode="before")
    @classmethod
    def _empty_is_none(cls, ports: object) -> object:
        # TOML has no null.
        if not isinstance(ports, list | tuple):
            return ports
        return tuple(None if port == "" else port for port in ports)

    @model_validator(mode="after")
    def _has_one_meaning(self) -> Link:
        if self.one_way and (self.reverse_rate_bps, self.reverse_delay_us) != (None, None):
            raise ValueError("a link that is one_way has no reverse_rate_bps and no reverse_delay_us")
        return self

    @model_serializer(mode="wrap")
    def _without_what_few_links_have(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # What reads links (the simulator, older documents) knows no fields of few links.
        data: dict[str, Any] = dump(self)
        for name in ("reverse_rate_bps", "reverse_delay_us", "one_way", *WirelessLink.model_fields):
            if data.get(name) is None or (name == "one_way" and not self.one_way):
                data.pop(name, None)
        if not self.parallel:
            data.pop("parallel", None)
        if data.get("ports") is None:
            data.pop("ports", None)
        return data

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions are there and alike."""
        return (
            not self.one_way
            and self.reverse_rate_bps in (None, self.rate_bps)
            and self.reverse_delay_us in (None, self.delay_us)
        )

    @property
    def name(self) -> str:
        """The link's name: its ends joined by a hyphen, in file order; `#1` and so on for parallel ones."""
        return f"{self.ends[0]}-{self.ends[1]}{self.mark}"

    @property
    def mark(self) -> str:
        """What its name and those of its directions end in; empty but for parallel links."""
        return f"#{self.parallel}" if self.parallel else ""

    @property
    def delay_s(self) -> float:
        """Propagation delay in seconds."""
        return self.delay_us * 1e-6


@dataclass(frozen=True)
class Arc:
    """One direction of a link. `tail_port` and `head_port` are the port numbers at the two nodes."""

    link: str
    tail: str
    head: str
    tail_port: int
    head_port: int
    rate_bps: float
    delay_s: float


class Network(BaseModel):
    """A connected network of hosts and switches. Build it with `topologies.load` or a generator.

    Those call `topologies.check.check_network`, which raises a `TopologyError` that names the place.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    description: str = ""
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts, in file order."""
        return tuple(node.name for node in self.nodes if node.kind == "host")

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Names of the switches, in file order."""
        return tuple(node.name for node in self.nodes if node.kind == "switch")

    @cached_property
    def gateway(self) -> str | None:
        """Name of the host by which the others reach what is no host of the network."""
        return next((node.name for node in self.nodes if node.gateway), None)

    @cached_property
    def vlans(self) -> dict[str, int]:
        """The tags of hosts that have one."""
        return {node.name: node.vlan for node in self.nodes if node.vlan is not None}

    @cached_property
    def dhcp_servers(self) -> tuple[str, ...]:
        """Names of the hosts that answer DHCP requests."""
        return tuple(node.name for node in self.nodes if node.dhcp_server)

    def datapath_id(self, switch: str) -> int:
        """Return the OpenFlow datapath id of a switch."""
        named = self._datapath_ids.get(switch)
        return self.switches.index(switch) + 1 if named is None else named

    def names_ports(self, switch: str) -> bool:
        """Return whether the ports of a switch are named by its links or learned, and not numbered."""
        return switch in self._datapath_ids

    @cached_property
    def _datapath_ids(self) -> dict[str, int]:
        return {node.name: node.datapath_id for node in self.nodes if node.datapath_id is not None}

    def host_ip(self, host: str, version: IpVersion = 4) -> str:
        """Return the address of a host on the data network.

        Raises:
            KeyError: it has none: the file gives it one of the other version alone.
        """
        return self.host_ips(host)[version]

    def host_ips(self, host: str) -> dict[IpVersion, str]:
        """Return the addresses of a host, IPv4 first.

        One that has an address of its own in the file has no other of that kind by its number.
        """
        given = self._given.get(host)
        if given is not None and (given.ip or given.ip6):
            said: tuple[tuple[IpVersion, str | None], ...] = ((4, given.ip), (6, given.ip6))
            return {version: ip for version, ip in said if ip is not None}
        number = self._host_numbers[host]
        return {version: str(network[number]) for version, network in DATA_NETWORKS.items()}

    @cached_property
    def _host_numbers(self) -> dict[str, int]:
        return {host: number for number, host in enumerate(self.hosts, 1)}

    def host_mac(self, host: str) -> str:
        """Return the MAC address of a host: the file's, or a locally administered one of its IPv4 address."""
        given = self._given.get(host)
        if given is not None and given.mac is not None:
            return given.mac
        ip = self.host_ips(host).get(4) or DATA_NETWORKS[4][self._host_numbers[host]]
        return f"02:00:{ipaddress.IPv4Address(ip).packed.hex(':')}"

    def knows_mac(self, host: str, switch: str) -> bool:
        """Return whether a host at a switch has the address of `host_mac`: that of its number, or given."""
        given = self._given.get(host)
        return not self.names_ports(switch) if given is None else given.mac is not None

    @cached_property
    def _given(self) -> dict[str, Node]:
        """The hosts to which the file gives addresses."""
        return {node.name: node for node in self.nodes if node.has_given_address}

    def link(self, name: str) -> Link:
        """Return the link called `name`, written in either direction; KeyError if there is none."""
        return self._links_by_name[name]

    def arcs(self) -> Iterator[Arc]:
        """Yield the directions of every link, in file order: both, or the one of a link that is one-way.

        The port of a switch that is to be learned, or is known by its name alone, is 0.
        """
        ports = {node.name: 0 for node in self.nodes}
        for link in self.links:
            a, b = link.ends
            ports[a] += 1
            ports[b] += 1
            at_a, at_b = self._port(link, 0, ports[a]), self._port(link, 1, ports[b])
            yield Arc(link.name, a, b, at_a, at_b, link.rate_bps, link.delay_s)
            if link.one_way:
                continue
            rate_bps = link.rate_bps if link.reverse_rate_bps is None else link.reverse_rate_bps
            delay_us = link.delay_us if link.reverse_delay_us is None else link.reverse_delay_us
            yield Arc(link.name, b, a, at_b, at_a, rate_bps, delay_us * 1e-6)

    def _port(self, link: Link, end: int, number: int) -> int:
        """Return the port number at an end of a link: the file's, the one by its place, or 0 (unknown)."""
        said = None if link.ports is None else link.ports[end]
        if isinstance(said, int):
            return said
        return 0 if said is not None or self.names_ports(link.ends[end]) else number

    def port_name(self, node: str, neighbour: str) -> str | None:
        """Return what a port is called where the file names it so; None where it has a number or none."""
        link = self.link(f"{node}-{neighbour}")
        said = None if link.ports is None else link.ports[link.ends.index(node)]
        return said if isinstance(said, str) else None

    @cached_property
    def _links_by_name(self) -> dict[str, Link]:
        names = {}
        for link in self.links:
            a, b = link.ends
            names[f"{a}-{b}{link.mark}"] = names[f"{b}-{a}{link.mark}"] = link
        return names
