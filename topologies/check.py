"""Whether a network makes sense as a whole: what the schema of its parts cannot see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from topologies.errors import InvalidTopology
from topologies.model import Network

MAX_HOSTS = 65_000
"""What the /16 of the data and of the management network can number."""


def check_network(
    network: Network, file: str | None = None, *, need_hosts: bool = True, need_connected: bool = True
) -> None:
    """Check that names are unique, links join nodes that exist, and every host reaches every other.

    Hosts never forward, so the switches must be connected by themselves; a host may have several links.

    Args:
        network: the network.
        file: the file it came from, for the error's text.
        need_hosts: whether a network of switches alone is an error.
        need_connected: whether switches that are not connected are one.

    Raises:
        InvalidTopology: with the place.
    """
    kinds = _check_nodes(network, file, need_hosts)
    _check_links(network, kinds, file)
    _check_hosts_linked(network, file)
    if need_connected:
        _check_connected(network, file)


def check_symmetric(network: Network, file: str | None = None) -> None:
    """Check that all links are alike in both directions, as emulation and simulation take them.

    Raises:
        InvalidTopology: with the first link that is not.
    """
    for link in network.links:
        if link.parallel or not link.is_symmetric:
            what = "leads one way only" if link.one_way else "differs between its two directions"
            what = "is parallel to another" if link.parallel else what
            reason = (
                f"{what}; hosts and switches are emulated and simulated over links that are alike in both "
                "directions. `mstcp-lab solve` routes over this network as it is"
            )
            raise InvalidTopology(f"links.{link.name}", reason, file)


def _check_nodes(network: Network, file: str | None, need_hosts: bool) -> dict[str, str]:
    kinds: dict[str, str] = {}
    ids: dict[int, str] = {}
    _check_addresses(network, file)
    for index, node in enumerate(network.nodes):
        if (
            node.kind == "switch"
            and (taken := ids.setdefault(network.datapath_id(node.name), node.name)) != node.name
        ):
            reason = f"{network.datapath_id(node.name)} is that of {taken} too"
            raise InvalidTopology(f"nodes[{index}].datapath_id", reason, file)
        if node.gateway and network.gateway != node.name:
            raise InvalidTopology(f"nodes[{index}].gateway", f"there is already {network.gateway}", file)
        if node.name in kinds:
            raise InvalidTopology(f"nodes[{index}].name", f"there is already a node {node.name}", file)
        kinds[node.name] = node.kind
    if not network.switches:
        raise InvalidTopology("nodes", "there is no switch", file)
    if need_hosts and not network.hosts:
        raise InvalidTopology("nodes", "there is no host", file)
    if len(network.hosts) > MAX_HOSTS:
        raise InvalidTopology(
            "nodes", f"there are {len(network.hosts)} hosts, at most {MAX_HOSTS} can be numbered", file
        )
    return kinds


def _check_addresses(network: Network, file: str | None) -> None:
    taken: dict[str, str] = {}
    is_numbered = not any(node.has_given_address for node in network.nodes)
    for index, node in enumerate(network.nodes if not is_numbered else ()):
        for version, ip in network.host_ips(node.name).items() if node.kind == "host" else ():
            if taken.setdefault(ip, node.name) != node.name:
                field = "ip" if version == 4 else "ip6"
                raise InvalidTopology(f"nodes[{index}].{field}", f"{ip} is that of {taken[ip]} too", file)


def check_numbered(network: Network) -> None:
    """Check that no host has an address or a VLAN of its own, as emulation and simulation take them.

    Raises:
        InvalidTopology: with the first host that has.
    """
    for index, node in enumerate(network.nodes):
        if node.has_given_address or node.vlan is not None:
            reason = f"{node.name} has an address of its own or a VLAN: it is a real host, not emulated"
            raise InvalidTopology(f"nodes[{index}]", reason)


def _check_links(network: Network, kinds: Mapping[str, str], file: str | None) -> None:
    seen: dict[tuple[frozenset[str], int], int] = {}
    for index, link in enumerate(network.links):
        for end in link.ends:
            if end not in kinds:
                raise InvalidTopology(f"links[{index}].ends", f"there is no node {end}", file)
        pair = frozenset(link.ends)
        if len(pair) == 1:
            raise InvalidTopology(f"links[{index}].ends", f"joins {link.ends[0]} to itself", file)
        if (pair, link.parallel) in seen:
            first = f"links[{seen[pair, link.parallel]}]"
            raise InvalidTopology(
                f"links[{index}].ends", f"{link.name} joins the same nodes as {first}", file
            )
        if all(kinds[end] == "host" for end in link.ends):
            raise InvalidTopology(
                f"links[{index}].ends", f"{link.name} joins two hosts: put a switch between them", file
            )
        seen[pair, link.parallel] = index
    _check_ports(network, kinds, file)


def _check_ports(network: Network, kinds: Mapping[str, str], file: str | None) -> None:
    """Check that no two links have one port."""
    taken: dict[tuple[str, int | str], str] = {}
    for index, link in enumerate(network.links):
        for end, port in zip(link.ends, link.ports or (), strict=False):
            if port is None:
                continue
            place = f"links[{index}].ports"
            if kinds[end] == "host":
                raise InvalidTopology(place, f"{end} is a host: leave its end empty", file)
            if (other := taken.setdefault((end, port), link.name)) != link.name:
                raise InvalidTopology(place, f"port {port} of {end} is that of {other} too", file)


def _check_hosts_linked(network: Network, file: str | None) -> None:
    linked = {end for link in network.links for end in link.ends}
    for host in network.hosts:
        if host not in linked:
            raise InvalidTopology("links", f"host {host} has no link", file)


def _check_connected(network: Network, file: str | None) -> None:
    apart = unreached_switches(network)
    if apart:
        reason = (
            f"the switches are not connected: {listed(apart)} cannot be reached from {network.switches[0]}; "
            "of a file of another format, FILE#largest-part is its largest part"
        )
        raise InvalidTopology("links", reason, file)


def unreached_switches(network: Network) -> list[str]:
    """Return the switches that no path over switches, whichever way links lead, joins to the first one."""
    switches = set(network.switches)
    neighbours: dict[str, list[str]] = {name: [] for name in network.switches}
    for link in network.links:
        a, b = link.ends
        if a in switches and b in switches:
            neighbours[a].append(b)
            neighbours[b].append(a)
    reached = {network.switches[0]}
    waiting = [network.switches[0]]
    while waiting:
        for other in neighbours[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return [name for name in network.switches if name not in reached]


def listed(names: Iterable[str], limit: int = 5) -> str:
    """Return names joined by commas, the tail of a long list as its number."""
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
