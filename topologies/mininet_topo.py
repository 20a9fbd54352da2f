"""Networks as Mininet `Topo`s, for Mininet's own command line (see topologies/mn.py)."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

from switch.datapath import choose_datapath
from topologies.errors import EmulationError
from topologies.generators import GENERATORS
from topologies.interface_names import InterfaceNames
from topologies.link_backends import choose_backend
from topologies.load import load
from topologies.mininet_links import EmulatedLink
from topologies.mininet_path import make_importable
from topologies.model import DATA_NETWORKS, Network
from topologies.port_numbering import link_parameters
from topologies.wires import ETHERNET_HEADER_BYTES

make_importable()

from mininet.topo import Topo


class NetworkTopo(Topo):  # type: ignore[misc]
    """A network with its own addresses, datapath ids, port numbers, and links that are what it says.

    Args:
        network: the network.
        seed: of loss and jitter.
        mtu: of the hosts' interfaces in bytes.
    """

    def build(self, network: Network, seed: int = 1, mtu: int = 1500) -> None:
        """Mininet calls this with the arguments of the constructor."""
        names = InterfaceNames(network)
        for host in network.hosts:
            self.addHost(
                host, ip=f"{network.host_ip(host)}/{DATA_NETWORKS[4].prefixlen}", mac=network.host_mac(host)
            )
        datapath = "kernel" if choose_datapath("auto") == "system" else "user"
        for switch in network.switches:
            if names.bridge(switch) != switch:
                reason = f"mn cannot name a bridge {switch!r}: rename the switch (at most 15 characters)"
                raise EmulationError(reason)
            self.addSwitch(switch, dpid=f"{network.datapath_id(switch):016x}", datapath=datapath)
        backend = choose_backend("auto", network, seed, mtu + ETHERNET_HEADER_BYTES)
        atexit.register(backend.close)
        for parameters in link_parameters(network, names):
            self.addLink(**parameters, cls=EmulatedLink, backend=backend, mtu=mtu)


def make_topos() -> dict[str, Callable[..., NetworkTopo]]:
    """Return what `mn --topo` can name.

    Settings of generators, `seed` and `mtu` follow as `--topo ring,6,rate_bps=5e6,mtu=576`.
    """
    topos: dict[str, Callable[..., NetworkTopo]] = {
        "butterfly": _loaded("butterfly", "a"),
        "butterfly_b": _loaded("butterfly", "b"),
        "file": _from_file,
    }
    for name in GENERATORS:
        topos[name.replace("-", "")] = _generated(name)
    return topos


def _loaded(name: str, variant: str) -> Callable[..., NetworkTopo]:
    def make(**settings: Any) -> NetworkTopo:
        return NetworkTopo(load(name, variant), **settings)

    return make


def _from_file(path: str, variant: str | None = None, **settings: Any) -> NetworkTopo:
    return NetworkTopo(load(path, variant), **settings)


def _generated(name: str) -> Callable[..., NetworkTopo]:
    def make(size: int, mtu: int = 1500, **settings: Any) -> NetworkTopo:
        spec = ":".join([name, str(size), *(f"{key}={value}" for key, value in settings.items())])
        return NetworkTopo(load(spec), seed=int(settings.get("seed", 1)), mtu=mtu)

    return make
