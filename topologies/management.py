"""The management network: joins the hosts to the controller, apart from the data network."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping

from topologies.commands import disable_ipv6, interface_names, ip, remove_interfaces
from topologies.interface_names import InterfaceNames
from topologies.model import Network

SUBNET = ipaddress.IPv4Network("10.255.0.0/16")
BRIDGE = "mgmt"
HOST_INTERFACE = "mgmt0"
CONTROLLER_IP = str(SUBNET[1])


def management_ip(network: Network, host: str) -> str:
    """Return a host's address on the management network: host `i` (from 0) has number `i + 2`."""
    return str(SUBNET[network.hosts.index(host) + 2])


def make_management(names: InterfaceNames, pids: Mapping[str, int]) -> Callable[[], None]:
    """Make the bridge in the current namespace and an interface in every host, which is not up yet.

    Args:
        names: of the interfaces.
        pids: of a process in the namespace of each host that is to be joined.

    Returns:
        What removes all of it.

    Raises:
        CommandFailed: as where there is such a bridge already. Nothing of this one remains.
    """
    ports = [names.management(host) for host in pids]
    made = {BRIDGE, *ports} - interface_names()

    def remove() -> None:
        remove_interfaces(made)

    try:
        ip([f"link add name {BRIDGE} type bridge"])
        ip(
            f"link add name {port} type veth peer name {HOST_INTERFACE} netns {pid}"
            for port, pid in zip(ports, pids.values(), strict=True)
        )
        disable_ipv6([BRIDGE, *ports])
        own = [f"address add {CONTROLLER_IP}/{SUBNET.prefixlen} dev {BRIDGE}", f"link set dev {BRIDGE} up"]
        ip([*own, *(f"link set dev {port} master {BRIDGE} up" for port in ports)])
    except BaseException:
        remove()
        raise
    return remove


def host_lines(network: Network, host: str) -> list[str]:
    """Return the lines of `ip` that bring a host's interface up with its address."""
    address = f"{management_ip(network, host)}/{SUBNET.prefixlen}"
    return [f"address add {address} dev {HOST_INTERFACE}", f"link set dev {HOST_INTERFACE} up"]
