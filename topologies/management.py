"""The management network: joins the hosts to the controller, apart from the data network."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from contextlib import ExitStack

from topologies.commands import disable_ipv6, ip, remove_interface
from topologies.interface_names import InterfaceNames
from topologies.model import Network

SUBNET = ipaddress.IPv4Network("10.255.0.0/16")
BRIDGE = "mgmt"
HOST_INTERFACE = "mgmt0"
CONTROLLER_IP = str(SUBNET[1])


def management_ip(network: Network, host: str) -> str:
    """Return a host's address on the management network: host `i` (from 0) has number `i + 2`."""
    return str(SUBNET[network.hosts.index(host) + 2])


def make_management(network: Network, names: InterfaceNames, pids: Mapping[str, int]) -> ExitStack:
    """Make the bridge in the current namespace and an interface in every host.

    Args:
        network: the network.
        names: of the interfaces.
        pids: of a process in the namespace of each host that is to be joined.

    Returns:
        What removes all of it when closed.

    Raises:
        CommandFailed: as where there is such a bridge already. Nothing of this one remains.
    """
    with ExitStack() as undo:
        ip([f"link add name {BRIDGE} type bridge"])
        undo.callback(remove_interface, BRIDGE)
        disable_ipv6([BRIDGE])
        ip([f"address add {CONTROLLER_IP}/{SUBNET.prefixlen} dev {BRIDGE}", f"link set dev {BRIDGE} up"])
        for host in pids:
            port = names.management(host)
            ip([f"link add name {port} type veth peer name {HOST_INTERFACE} netns {pids[host]}"])
            undo.callback(remove_interface, port)
            disable_ipv6([port])
            ip([f"link set dev {port} master {BRIDGE} up"])
            address = f"{management_ip(network, host)}/{SUBNET.prefixlen}"
            lines = [f"address add {address} dev {HOST_INTERFACE}", f"link set dev {HOST_INTERFACE} up"]
            ip(lines, pids[host])
        return undo.pop_all()
    raise AssertionError("unreachable: the stack swallows nothing")
