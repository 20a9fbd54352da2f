"""Builds networks with Mininet and Open vSwitch: hosts in namespaces, bridges, links as asked for."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from switch.ovs import Bridge, Port, PrivateInstance
from switch.processes import end_process
from topologies import mininet_prompt
from topologies.commands import IPV6_SETTINGS, run_in_namespaces
from topologies.errors import EmulationError
from topologies.interface_names import InterfaceNames
from topologies.link_backends import BackendName, choose_backend
from topologies.management import CONTROLLER_IP, host_lines, make_management, management_ip
from topologies.mininet_links import EmulatedLink, link_up, make_wire, offloads_off
from topologies.mininet_path import make_importable
from topologies.model import DATA_NETWORKS, IpVersion, Network
from topologies.overrides import apply_overrides
from topologies.port_numbering import link_parameters
from topologies.wires import ETHERNET_HEADER_BYTES, DirectionCounters, LinkBackend, Wire

make_importable()

from mininet.net import Mininet
from mininet.node import Host, OVSSwitch

HOST_SETTINGS = {
    # A host has two interfaces: each answers ARP for, and asks with, its own address alone.
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
}
NO_IPV6 = {"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1"}
IPV6 = {
    "net.ipv6.conf.all.disable_ipv6": "0",
    "net.ipv6.conf.all.addr_gen_mode": "1",  # none but those that are given
}
NO_ROUTERS = "for each in /proc/sys/net/ipv6/conf/*/accept_ra; do echo 0 > $each; done"
MIN_MTU = {4: 68, 6: 1280}
"""RFC 791 and RFC 8200: Linux has no IPv6 on interfaces of less."""
_TCP_IP6_BYTES = 60
STOP_TIMEOUT_S = 2.0
LOOPBACK_UP = ("ifconfig", "lo", "up")


class BridgeSwitch(OVSSwitch):  # type: ignore[misc]
    """A switch that is a bridge of a private Open vSwitch.

    Args:
        name: of the node.
        ovs: the instance.
        bridge: name of the bridge.
        datapath_id: OpenFlow datapath id.
        controllers: address and port of each controller.
        params: as for `mininet.node.OVSSwitch`.
    """

    def __init__(
        self,
        name: str,
        *,
        ovs: PrivateInstance,
        bridge: str,
        datapath_id: int,
        controllers: Sequence[tuple[str, int]],
        **params: Any,
    ) -> None:
        self.ovs = ovs
        self.bridge = bridge
        self.controllers = controllers
        super().__init__(name, dpid=f"{datapath_id:016x}", **params)

    @classmethod
    def setup(cls) -> None:
        """Mininet asks the machine's own Open vSwitch here, which has no part in this."""

    @classmethod
    def batchStartup(cls, switches: Sequence[Any], run: Any = None) -> Sequence[Any]:
        """Nothing is saved up: `start` has done it."""
        return switches

    @classmethod
    def batchShutdown(cls, switches: Sequence[Any], run: Any = None) -> Sequence[Any]:
        """Nothing is done at once: Mininet then stops each switch."""
        return ()

    def startShell(self, mnopts: str | None = None) -> None:
        """Start no shell until a command needs it: each is two programs, and switches may be hundreds."""

    def cmd(self, *args: Any, **options: Any) -> Any:
        """Run a command in the switch's shell, and return what it printed."""
        if args == LOOPBACK_UP:
            return ""  # of each switch's when it is made; it is up
        self._need_shell()
        return super().cmd(*args, **options)

    def sendCmd(self, *args: Any, **options: Any) -> None:
        """Send a command to the switch's shell, as Mininet's command line does."""
        self._need_shell()
        super().sendCmd(*args, **options)

    def popen(self, *args: Any, **options: Any) -> Any:
        """Start a program beside the switch's shell."""
        self._need_shell()
        return super().popen(*args, **options)

    def _need_shell(self) -> None:
        if self.shell is None:
            super().startShell()

    def start(self, controllers: Sequence[Any]) -> None:
        """Make the bridge with all its ports, then shape the links that Open vSwitch has cleared."""
        self.ovs.add_bridges([self.described()])
        self.shape_links()

    def described(self) -> Bridge:
        """Return the bridge with its ports as Open vSwitch is told of it."""
        ports = [
            Port(interface.name, self.ports[interface])
            for interface in self.intfList()
            if self.ports[interface]
        ]
        return Bridge(self.bridge, int(self.dpid, 16), ports, self.controllers)

    def shape_links(self) -> None:
        """Shape the links once more, which Open vSwitch has cleared."""
        for interface in self.intfList():
            self.TCReapply(interface)

    def stop(self, deleteIntfs: bool = True) -> None:
        """Remove the bridge; the links remove their interfaces."""
        self.ovs.remove_bridge(self.bridge)
        self.terminate()

    def dpctl(self, *args: str) -> str:
        """Run ovs-ofctl on the bridge (`dpctl` of Mininet's command line)."""
        return self.ovs.ofctl(args[0], self.bridge, *args[1:])

    def _popen(self, cmd: Sequence[str], **params: Any) -> Any:
        # The switch's shell speaks to the private instance too.
        params.setdefault("env", {**os.environ, **self.ovs.environment})
        return super()._popen(cmd, **params)


@dataclass(frozen=True)
class LinkChange:
    """A call of `Emulation.set_link`; `link` is named as the network does."""

    link: str
    up: bool | None
    silent: bool
    settings: Mapping[str, float | None]


def _tell_nobody(change: LinkChange) -> None:
    del change


class Emulation:
    """A running network; a context manager that removes all it made, also when building fails.

    The current network namespace should be one of its own: bridges, wires and the management network live
    there.

    Args:
        network: what to build.
        ovs: a running private Open vSwitch in the same namespace.
        controller: IPv4 address and port of the OpenFlow controller; None leaves the switches without one.
        link_backend: `netem`, `emulator`, or `auto`: netem where the kernel has it, and the network no Wi-Fi.
        seed: of loss, jitter and Wi-Fi.
        mtu: of the hosts' data interfaces in bytes (the paper's 590-byte frames: 576). Where it is less than
            IPv6 takes, TCP over IPv6 sends packets of this size all the same.
        ip_version: 6 gives the hosts an address of IPv6 beside that of IPv4; `host_ip` is of this version.
        homes: hosts of the network that are further interfaces of others, by name: they share the namespace
            and the management address of these (see `topologies.second_interfaces`).
        exact_clock: whether sleeps end on time, as in virtual time.

    Raises:
        EmulationError: by `start`, when the network can't be built or would not be what was asked for.
        switch.SwitchError: by `start`, when Open vSwitch refuses.
    """

    def __init__(
        self,
        network: Network,
        *,
        ovs: PrivateInstance,
        controller: tuple[str, int] | None = ("127.0.0.1", 6653),
        link_backend: BackendName = "auto",
        seed: int = 1,
        mtu: int = 1500,
        ip_version: IpVersion = 4,
        homes: Mapping[str, str] | None = None,
        exact_clock: bool = False,
    ) -> None:
        self.network = network
        self._exact_clock = exact_clock
        self._homes = dict(homes or {})
        self._ovs = ovs
        self._controllers = [] if controller is None else [controller]
        self._backend_asked = link_backend
        self._seed = seed
        self._mtu = mtu
        self.ip_version = ip_version
        self._names = InterfaceNames(network)
        self._processes: list[subprocess.Popen[Any]] = []
        self._undo = contextlib.ExitStack()
        self._backend: LinkBackend | None = None
        self._links: dict[str, EmulatedLink] = {}
        self._started = False
        self._down: set[str] = set()
        self.on_link_change: Callable[[LinkChange], None] = _tell_nobody
        """Told of each change of a link, before it is made."""

    def __enter__(self) -> Emulation:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Build the network and check that its links are what was asked for."""
        if self._started:
            raise EmulationError("this emulation has been started before: make a new one")
        self._started = True
        try:
            self._build()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End what runs in the hosts and remove everything that was made. May be called again."""
        for process in self._processes:
            _end(process)
        self._processes.clear()
        if self._backend is None:
            self._undo.close()
            return
        self._backend.begin_close()  # ends while the rest is removed
        try:
            self._undo.close()
        finally:
            self._backend.close()

    def connect_switches(self, *controllers: tuple[str, int]) -> None:
        """Give all switches these controllers, for an emulation that was built without."""
        self._controllers = list(controllers)
        self._ovs.set_controllers([switch.bridge for switch in self.net.switches], self._controllers)

    def prompt(self) -> None:
        """Hand the terminal to Mininet's own command line until the user leaves it."""
        mininet_prompt.prompt(self.net)

    def run_commands(self, lines: Iterable[str]) -> None:
        """Run Mininet's commands (`topologies.mininet_prompt.run_commands`)."""
        mininet_prompt.run_commands(self.net, lines)

    def _build(self) -> None:
        self.net = _bare_mininet()
        frame_bytes = self._mtu + ETHERNET_HEADER_BYTES
        backend = choose_backend(
            self._backend_asked, self.network, self._seed, frame_bytes, exact_clock=self._exact_clock
        )
        self._backend = backend
        machines = [name for name in self.network.hosts if name not in self._homes]
        for name in machines:
            self._undo.callback(self.net.addHost(name, ip=None).terminate)
        for name in self.network.switches:
            self._add_switch(name)
        pids = {name: self.host(name).pid for name in machines}
        self._undo.callback(make_management(self._names, pids))
        links = [self._at_home(parameters) for parameters in link_parameters(self.network, self._names)]
        wires = [self._wire(parameters) for parameters in links]
        backend.make(wires)
        self._undo.callback(backend.remove, wires)
        # Open vSwitch takes up its ports, which may take a second, while the hosts are set up.
        bridges = self._bridges(links)
        self._ovs.begin_bridges(bridges)
        self._undo.callback(self._ovs.remove_bridge, *(bridge.name for bridge in bridges))
        run_in_namespaces({pids[name]: self._host_script(name, wires) for name in machines})
        for parameters in links:
            link = self.net.addLink(**parameters, cls=EmulatedLink, backend=backend, is_ready=True)
            self._links[link.wire.link.name] = link
        for name in machines:
            interface = self.host(name).intfList()[0]
            interface.ip = self.network.host_ip(name)
            interface.prefixLen = str(DATA_NETWORKS[4].prefixlen)
        self._ovs.finish_bridges(bridges)
        for switch in self.net.switches:
            switch.shape_links()
        self.net.built = True
        self.check_links()

    def _bridges(self, links: Sequence[Mapping[str, Any]]) -> list[Bridge]:
        """Return the bridges of all switches with the ports that links have there."""
        ports: dict[str, list[Port]] = {name: [] for name in self.network.switches}
        for link in links:
            numbers = (link["port1"], link["port2"])
            for node, number, interface in zip(link["ends"], numbers, link["interfaces"], strict=True):
                if node in ports:
                    ports[node].append(Port(interface, number))
        return [
            Bridge(self._names.bridge(name), self.network.datapath_id(name), ports[name], self._controllers)
            for name in self.network.switches
        ]

    def _host_script(self, machine: str, wires: Sequence[Wire]) -> str:
        """Return the shell script that sets a host up, and further interfaces that it is home to."""
        has_ipv6 = self.ip_version == 6
        settings = HOST_SETTINGS | (IPV6 if has_ipv6 else NO_IPV6 if IPV6_SETTINGS.exists() else {})
        lines = [f"echo {value} > /proc/sys/{key.replace('.', '/')}" for key, value in settings.items()]
        lines += [NO_ROUTERS] if has_ipv6 else []
        ip_lines = ["link set dev lo up"]
        for end in (end for wire in wires for end in wire.ends):
            if self._home(end.node) == machine:
                lines.append(shlex.join(offloads_off(end.interface)))
                ip_lines.append(link_up(end.interface, max(self._mtu, MIN_MTU[self.ip_version])))
        for name in self.network.hosts:
            if self._home(name) == machine:
                ip_lines += self._address_lines(name)
        ip_lines += host_lines(self.network, machine)
        lines += ["ip -batch - <<'END'", *ip_lines, "END"]
        return "\n".join(lines)

    def _home(self, name: str) -> str:
        return self._homes.get(name, name)

    def _wire(self, parameters: Mapping[str, Any]) -> Wire:
        nodes = (self.net[parameters["node1"]], self.net[parameters["node2"]])
        names = ("link", "ends", "interfaces", "macs", "relays")
        link, ends, interfaces, macs, relays = (parameters[name] for name in names)
        return make_wire(link, nodes, ends, interfaces, macs, relays)

    def _add_switch(self, name: str) -> None:
        switch = self.net.addSwitch(
            name,
            ovs=self._ovs,
            bridge=self._names.bridge(name),
            datapath_id=self.network.datapath_id(name),
            controllers=self._controllers,
        )
        self._undo.callback(switch.terminate)

    def _at_home(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a link whose ends may be further interfaces of other hosts."""
        parameters["ends"] = parameters["node1"], parameters["node2"]
        for node, port in (("node1", "port1"), ("node2", "port2")):
            home = self._homes.get(parameters[node])
            if home is not None:
                parameters[node], parameters[port] = home, self.net[home].newPort()
        return parameters

    def _address_lines(self, name: str) -> list[str]:
        """Return the lines of `ip` with a host's addresses; further links of it have none of their own."""
        interface, lines = self._names.port(name, 1), []
        for version, ip in self.network.host_ips(name).items():
            network = DATA_NETWORKS[version]
            # A second interface is alone in its subnet: what it reaches is said by the routes of its user.
            is_further = name in self._homes
            length = network.max_prefixlen if is_further else network.prefixlen
            if version == 4:
                lines.append(f"address add {ip}/{length} dev {interface}")
            elif self.ip_version == 6:
                # There are no duplicates, and no time to look for them. What is forwarded asks from fe80::N.
                lines.append(f"address add {ip}/{length} dev {interface} nodad noprefixroute")
                lines.append(f"address add fe80::{ip.rpartition(':')[2]}/64 dev {interface} nodad")
                if not is_further:
                    lines.append(f"route add {network} dev {interface} {shlex.join(self.route_settings())}")
            else:
                continue
            gateway = self.network.gateway
            if gateway not in (None, name) and not is_further:
                lines.append(f"route add default via {self.network.host_ip(gateway, version)}")
        return lines

    def route_settings(self) -> list[str]:
        """Return what a route between hosts needs beside its way, as `ip route` takes it."""
        return ["advmss", str(self._mtu - _TCP_IP6_BYTES)] if self.ip_version == 6 else []

    def host(self, name: str) -> Any:
        """Return a host as Mininet's `Host`."""
        if name not in self.network.hosts:
            raise EmulationError(f"there is no host {name!r}: there are {', '.join(self.network.hosts)}")
        return self.net[self._home(name)]

    def host_ip(self, name: str) -> str:
        """Return a host's address on the data network."""
        self.host(name)
        return self.network.host_ip(name, self.ip_version)

    def management_ip(self, name: str) -> str:
        """Return a host's address on the management network."""
        return management_ip(self.network, self.host(name).name)

    @property
    def controller_ip(self) -> str:
        """The address at which the hosts reach the controller, on the management network."""
        return CONTROLLER_IP

    def popen(self, host: str, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program in a host; it is ended with the emulation.

        Args:
            host: name of the host.
            argv: the program and its arguments.
            options: as for `subprocess.Popen`.
        """
        # mnexec becomes the program, so that signals to the process reach it.
        process = subprocess.Popen(["mnexec", "-a", str(self.host(host).pid), *argv], **options)
        self._processes.append(process)
        return process

    def run(
        self, host: str, argv: Sequence[str], timeout: float = 30.0, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in a host to its end and return its status and what it printed.

        Raises:
            EmulationError: it did not end within `timeout` seconds; it has been ended then.
        """
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        process = self.popen(host, argv, text=True, **options)
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise EmulationError(f"{argv[0]} in {host} did not end within {timeout:g} s") from None
        finally:
            _end(process)
            self._processes.remove(process)
        return subprocess.CompletedProcess(list(argv), process.returncode, output, errors)

    @property
    def link_backend(self) -> str:
        """What makes the links: `netem` or `emulator`."""
        return self._running_backend().name

    def link_counters(self) -> list[DirectionCounters]:
        """Return what each direction of each link has carried since it was built, in file order.

        Lateness is that since the last call.
        """
        return self._running_backend().counters(self._wires())

    def qdiscs(self) -> list[str]:
        """Return how each direction of each link is made, one line each, for the record of a run."""
        return [
            f"{wire.link.name}: {line}"
            for wire in self._wires()
            for line in self._running_backend().describe(wire)
        ]

    def check_links(self) -> None:
        """Read every link back that was not taken down.

        Raises:
            LinkNotFaithful: one is not what was asked for.
        """
        there = [wire for wire in self._wires() if wire.link.name not in self._down]
        self._running_backend().check(there)

    def set_link(
        self, name: str, *, up: bool | None = None, silent: bool = False, **settings: float | None
    ) -> None:
        """Change a link while packets flow.

        Args:
            name: of the link, in either direction.
            up: take the link down or up; None leaves it.
            silent: with `up=False`: the ends keep their carrier, so that only missing packets tell.
            settings: new values of `rate_bps`, `delay_us`, `queue_packets`, `queue_bytes`, `loss` or
                `jitter_us`.

        Raises:
            InvalidOverride: there is no such link or setting, or the value does not fit.
        """
        network = apply_overrides(self.network, {"links": {name: settings}})
        try:
            link = network.link(name)
        except KeyError:
            raise EmulationError(f"there is no link {name!r}") from None
        emulated = self._links[link.name]
        self.on_link_change(LinkChange(link.name, up, silent, settings))
        if settings:
            wire = emulated.wire.with_link(link)
            self._running_backend().change(wire)
            emulated.wire = wire
            self.network = network
        if up is not None:
            (self._down.discard if up else self._down.add)(link.name)
            self._running_backend().set_up(emulated.wire, up, silent)

    def _running_backend(self) -> LinkBackend:
        if self._backend is None:
            raise EmulationError("this network is not built yet: use it in a `with` block, or call start()")
        return self._backend

    def _wires(self) -> list[Wire]:
        return [link.wire for link in self._links.values()]


def _bare_mininet() -> Any:
    """Return a Mininet without nodes that leaves the machine's limits and sysctls alone."""
    if os.geteuid() != 0:
        raise EmulationError("emulated networks need root: run it with sudo")
    # Mininet would raise machine-wide limits and the TCP buffers here, which runs set for themselves.
    Mininet.inited = True
    return Mininet(topo=None, build=False, controller=None, switch=BridgeSwitch, host=Host, link=EmulatedLink)


def _end(process: subprocess.Popen[Any]) -> None:
    end_process(process, STOP_TIMEOUT_S)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
