"""Links of Mininet that are what was asked for, or are refused."""

from __future__ import annotations

from typing import Any

from topologies.mininet_path import make_importable

make_importable()

from mininet.link import Link as MininetLink
from mininet.link import TCIntf
from mininet.node import Switch

from topologies.commands import ip, run, within
from topologies.model import Link
from topologies.wires import End, LinkBackend, Wire

OFFLOADS = ("tx", "tso", "gso", "gro")
"""Off at the hosts: with checksums left to a network card that is not there, TCP passes nothing through Open
vSwitch's userspace datapath, and packets of more than one segment would pass a link as one."""


class EmulatedInterface(TCIntf):  # type: ignore[misc]
    """An end of an `EmulatedLink`.

    A `TCIntf` because Mininet configures these again after Open vSwitch has cleared the queueing disciplines
    of its ports (`OVSSwitch.TCReapply`).
    """

    def config(self, mtu: int | None = None, **_params: Any) -> dict[str, Any]:
        """Bring the interface up: a host's without offloads, a switch's with its link's shape."""
        if isinstance(self.node, Switch):
            self.link.backend.shape(self.link.wire)
            return {}
        if not self.link.is_ready:
            pid = namespace_pid(self.node)
            run(within(pid, offloads_off(self.name)))
            ip([link_up(self.name, mtu)], pid)
        return {}


class EmulatedLink(MininetLink):  # type: ignore[misc]
    """A link that a backend makes.

    Args:
        node1: first node.
        node2: second node.
        link: rate, delay, queue, loss and jitter.
        interfaces: names of the interfaces at the nodes.
        macs: their MAC addresses.
        relays: names of two more interfaces, for the link emulator.
        ends: what the ends are called in the network, where that is not how Mininet calls the nodes.
        backend: what makes the link.
        mtu: of the interfaces of hosts; None leaves 1500 bytes.
        is_ready: whether the interfaces are made, and those of hosts up, before Mininet hears of the link.
        params: as for `mininet.link.Link`.
    """

    def __init__(
        self,
        node1: Any,
        node2: Any,
        *,
        link: Link,
        interfaces: tuple[str, str],
        macs: tuple[str, str],
        relays: tuple[str, str],
        backend: LinkBackend,
        ends: tuple[str, str] | None = None,
        mtu: int | None = None,
        is_ready: bool = False,
        **params: Any,
    ) -> None:
        nodes = (node1, node2)
        self.wire = make_wire(link, nodes, ends or (node1.name, node2.name), interfaces, macs, relays)
        a, b = self.wire.ends
        self.backend = backend
        self.is_ready = is_ready
        self._is_made = False
        # Set by Mininet.addLink at random.
        params.update(addr1=a.mac, addr2=b.mac)
        try:
            super().__init__(
                node1,
                node2,
                intfName1=a.interface,
                intfName2=b.interface,
                cls1=EmulatedInterface,
                cls2=EmulatedInterface,
                mtu=mtu,
                **params,
            )
        except BaseException:
            # What could not be made may be an interface that was there before.
            if self._is_made:
                backend.remove([self.wire])
            raise

    def makeIntfPair(self, *_args: Any, **_params: Any) -> None:
        """Make the interfaces; `mininet.link.Link` calls this where it would make a plain veth pair."""
        if not self.is_ready:
            self.backend.make([self.wire])
            self._is_made = True

    def delete(self) -> None:
        """Remove the interfaces."""
        for interface in (self.intf1, self.intf2):
            interface.node.delIntf(interface)
        self.backend.remove([self.wire])


def make_wire(
    link: Link,
    nodes: tuple[Any, Any],
    names: tuple[str, str],
    interfaces: tuple[str, str],
    macs: tuple[str, str],
    relays: tuple[str, str],
) -> Wire:
    """Return a link as it is built between two of Mininet's nodes, which the network calls `names`."""
    a, b = (
        End(name, interface, mac, namespace_pid(node))
        for name, node, interface, mac in zip(names, nodes, interfaces, macs, strict=True)
    )
    return Wire(link, (a, b), relays)


def offloads_off(interface: str) -> list[str]:
    """Return the command that leaves a host's interface without offloads."""
    return ["ethtool", "-K", interface, *(word for offload in OFFLOADS for word in (offload, "off"))]


def link_up(interface: str, mtu: int | None) -> str:
    """Return the line of `ip` that brings a host's interface up."""
    return f"link set dev {interface}{'' if mtu is None else f' mtu {mtu}'} up"


def namespace_pid(node: Any) -> int | None:
    """Return the process that holds a node's network namespace; None for a node in the current one."""
    return node.pid if node.inNamespace else None
