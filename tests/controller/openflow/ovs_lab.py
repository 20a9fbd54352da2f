"""Real Open vSwitch bridges under the real controller, for tests as root in namespaces of their own.

Everything that is made here ends with the namespaces.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switch.ovs import Port, PrivateInstance
from tests.fakes.waiting import TIMEOUT_S
from tests.paths import ROOT
from topologies.model import Network

SERVER = """
import socket
listener = socket.create_server(("0.0.0.0", 5001))
print("listening", flush=True)
connection, _ = listener.accept()
total = 0
while data := connection.recv(65536):
    total += len(data)
connection.sendall(b"%d" % total)
"""

CLIENT = """
import socket, sys
source_port, address = int(sys.argv[1]), sys.argv[2]
source = ("0.0.0.0", source_port)
with socket.create_connection((address, 5001), timeout=20, source_address=source) as connection:
    connection.sendall(bytes(100_000))
    connection.shutdown(socket.SHUT_WR)
    print(connection.recv(100).decode())
"""


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S).stdout


def in_host(host: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", host, *command]


def join_directly(one: str, other: str) -> None:
    """Make the two ends of a link."""
    run("ip", "link", "add", one, "type", "veth", "peer", "name", other)


def make_links(network: Network, join: Callable[[str, str], None] = join_directly) -> dict[str, list[Port]]:
    """Make all hosts and interfaces (`S0-S4`: that of S0 towards S4), and return the ports of each switch."""
    ports: dict[str, list[Port]] = {name: [] for name in network.switches}
    made = set()
    for arc in network.arcs():
        if arc.link in made:
            continue
        made.add(arc.link)
        ends = (f"{arc.tail}-{arc.head}", f"{arc.head}-{arc.tail}")
        join(*ends)
        for node, name, number in ((arc.tail, ends[0], arc.tail_port), (arc.head, ends[1], arc.head_port)):
            if node in network.switches:
                run("ip", "link", "set", name, "up")
                ports[node].append(Port(name, number))
            else:
                make_host(network, node, name)
    return ports


def make_host(network: Network, name: str, interface: str) -> None:
    run("ip", "netns", "add", name)
    run("ip", "link", "set", interface, "netns", name)
    run(*in_host(name, "ip", "link", "set", interface, "address", network.host_mac(name)))
    for version, ip in network.host_ips(name).items():
        address = f"{ip}/{16 if version == 4 else 64}"
        run(*in_host(name, "ip", "address", "add", address, "dev", interface, *["nodad"] * (version == 6)))
    # With checksum offload, packets leave veth without checksums and Open vSwitch's userspace passes no TCP.
    run(*in_host(name, "ethtool", "-K", interface, "tx", "off"))
    run(*in_host(name, "ip", "link", "set", interface, "up"))


class Rest:
    """The controller's REST door."""

    def __init__(self, address: str) -> None:
        self._base = f"http://{address}/v1"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def ready(self) -> bool:
        return bool(self.call("GET", "/health")["ready"])

    def links_down(self) -> list[str]:
        down = self.call("GET", "/health")["links_down"]
        assert isinstance(down, list)
        return down


@dataclass
class Lab:
    """A network that runs."""

    network: Network
    ovs: PrivateInstance
    rest: Rest
    controller: subprocess.Popen[str]

    def transfer(self, source: str, destination: str, source_port: int) -> int:
        """Send 100,000 bytes by TCP from a host to port 5001 of another and return how many arrived."""
        server = subprocess.Popen(
            in_host(destination, sys.executable, "-c", SERVER), stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            server.stdout.readline()
            address = self.network.host_ip(destination)
            return int(run(*in_host(source, sys.executable, "-c", CLIENT, str(source_port), address)))
        finally:
            server.kill()
            server.communicate()


def start_controller(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """Start a controller of the folder's `network.json`; returns it and its REST address."""
    topology = folder / "network.json"
    command = [sys.executable, "-m", "controller.cli", "--topology", str(topology), "--log-format", "json"]
    command += ["--store", "none", "--probe-interval", "1", "--silence", "10"]  # the machine may be busy
    command += options
    with (folder / "controller.log").open("a") as log:
        controller = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    assert controller.stdout is not None
    addresses = json.loads(controller.stdout.readline())
    return controller, str(addresses["rest"][0])


@contextmanager
def laboratory(
    network: Network,
    folder: Path,
    *options: str,
    join: Callable[[str, str], None] = join_directly,
) -> Iterator[Lab]:
    """Start controller, switches and hosts; the controller's log is `controller.log` in the folder."""
    run("ip", "link", "set", "lo", "up")
    # The hosts' names must not be seen outside.
    run("mount", "-t", "tmpfs", "none", "/run")
    (folder / "network.json").write_text(network.model_dump_json())
    controller, address = start_controller(folder, *options)
    with PrivateInstance(folder / "ovs", datapath="netdev") as ovs:
        for name, ports in make_links(network, join).items():
            ovs.add_bridge(
                name,
                datapath_id=network.datapath_id(name),
                ports=ports,
                controllers=[("127.0.0.1", 6653)],
            )
        yield Lab(network, ovs, Rest(address), controller)
