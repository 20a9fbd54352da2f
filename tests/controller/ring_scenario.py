"""A ring of three Open vSwitch bridges under the real controller: prints what happened as JSON.

Run as root in network, mount and PID namespaces of its own; everything it makes ends with them. The link A-B
runs through a Linux bridge in its middle, so that it can be cut without either switch's noticing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from switch.ovs import Port, PrivateInstance
from topologies.model import Network

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
DETOUR = ["H1", "A", "C", "B", "H2"]

NETWORK = Network.model_validate(
    {
        "name": "ring",
        "nodes": [{"name": name, "kind": "switch"} for name in "ABC"]
        + [{"name": name, "kind": "host"} for name in ("H1", "H2")],
        "links": [
            {"ends": ends, "rate_bps": 10e6, "delay_us": 1000}
            for ends in (("A", "B"), ("B", "C"), ("A", "C"), ("H1", "A"), ("H2", "B"))
        ],
    }
)

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
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout


def in_host(host: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", host, *command]


def make_links() -> dict[str, list[Port]]:
    """Make all interfaces and hosts, and return the ports of each switch."""
    ports: dict[str, list[Port]] = {name: [] for name in NETWORK.switches}
    made = set()
    for arc in NETWORK.arcs():
        if arc.link in made:
            continue
        made.add(arc.link)
        ends = (f"{arc.tail}-{arc.head}", f"{arc.head}-{arc.tail}")
        if arc.link == "A-B":
            run("ip", "link", "add", "middle", "type", "bridge", "group_fwd_mask", "0x4000")  # lets LLDP pass
            for name in ends:
                run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-far")
                run("ip", "link", "set", f"{name}-far", "up", "master", "middle")
            run("ip", "link", "set", "middle", "up")
        else:
            run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for node, name, number in ((arc.tail, ends[0], arc.tail_port), (arc.head, ends[1], arc.head_port)):
            if node in NETWORK.switches:
                run("ip", "link", "set", name, "up")
                ports[node].append(Port(name, number))
            else:
                make_host(node, name)
    return ports


def make_host(name: str, interface: str) -> None:
    run("ip", "netns", "add", name)
    run("ip", "link", "set", interface, "netns", name)
    run(*in_host(name, "ip", "link", "set", interface, "address", NETWORK.host_mac(name)))
    run(*in_host(name, "ip", "address", "add", f"{NETWORK.host_ip(name)}/16", "dev", interface))
    # With checksum offload, packets leave veth without checksums and Open vSwitch's userspace passes no TCP.
    run(*in_host(name, "ethtool", "-K", interface, "tx", "off"))
    run(*in_host(name, "ip", "link", "set", interface, "up"))


def wait_for(condition: Callable[[], bool], what: str) -> float:
    """Wait, and return how many seconds it took."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > PATIENCE_S:
            raise TimeoutError(f"waited {PATIENCE_S:g} s for {what}")
        time.sleep(0.05)
    return time.monotonic() - start


class Rest:
    """The controller's REST door."""

    def __init__(self, address: str) -> None:
        self._base = f"http://{address}/v1"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def ready(self) -> bool:
        return bool(self.call("GET", "/health")["ready"])

    def links_down(self) -> list[str]:
        down = self.call("GET", "/health")["links_down"]
        assert isinstance(down, list)
        return down


def ping() -> bool:
    command = in_host("H1", "ping", "-c", "3", "-i", "0.2", "-W", "5", NETWORK.host_ip("H2"))
    return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False).returncode == 0


def transfer(source_port: int) -> int:
    """Send 100,000 bytes by TCP from H1 to H2 and return how many arrived."""
    server = subprocess.Popen(in_host("H2", sys.executable, "-c", SERVER), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        client = in_host("H1", sys.executable, "-c", CLIENT, str(source_port), NETWORK.host_ip("H2"))
        return int(run(*client))
    finally:
        server.kill()
        server.communicate()


def pinned_packets(ovs: PrivateInstance) -> dict[str, list[int]]:
    """Return the packet counters of the pinned rules of each switch."""
    found = {}
    for name in NETWORK.switches:
        rules = [line for line in ovs.ofctl("dump-flows", name, "table=1").splitlines() if "tcp" in line]
        found[name] = [int(match[1]) for line in rules if (match := re.search(r"n_packets=(\d+)", line))]
    return found


def observe(ovs: PrivateInstance, rest: Rest, seen: dict[str, Any]) -> None:
    seen["ready_after_s"] = wait_for(rest.ready, "the controller to be ready")
    seen["ping"] = ping()
    body = {"source": "H1", "destination": "H2", "destination_port": 5001, "source_ports": [40001]}
    flow = rest.call("POST", "/flows", body | {"paths": [{"nodes": DETOUR, "rate_bps": 1e6}]})
    seen["rules_installed"] = {name: len(counts) for name, counts in pinned_packets(ovs).items()}
    seen["bytes_over_pinned_path"] = transfer(40001)
    # Open vSwitch brings the counters of its fast path up to date now and then.
    wait_for(lambda: all(min(counts) > 2 for counts in pinned_packets(ovs).values()), "packets on the path")
    seen["pinned_packets"] = pinned_packets(ovs)
    rest.call("DELETE", f"/flows/{flow['flow_id']}")
    # The removal is not confirmed: give the switches a moment.
    wait_for(lambda: not any(pinned_packets(ovs).values()), "the rules to go")
    seen["bytes_over_default_route"] = transfer(40002)
    run("ip", "link", "set", "A-C", "down")
    seen["port_down_noticed_after_s"] = wait_for(lambda: "A-C" in rest.links_down(), "the port to be down")
    run("ip", "link", "set", "A-C", "up")
    seen["port_up_noticed_after_s"] = wait_for(rest.ready, "the link to be found again")
    run("ip", "link", "set", "A-B-far", "nomaster")
    seen["silent_loss_noticed_after_s"] = wait_for(lambda: "A-B" in rest.links_down(), "the silent loss")
    seen["ping_around_the_loss"] = ping()
    run("ip", "link", "set", "A-B-far", "master", "middle")
    wait_for(rest.ready, "the link to be found again")
    ovs.remove_bridge("C")
    seen["switch_loss_noticed_after_s"] = wait_for(
        lambda: not rest.call("GET", "/health")["switches"][2]["connected"], "the loss of the switch"
    )


def main(folder: Path) -> dict[str, Any]:
    run("ip", "link", "set", "lo", "up")
    # The hosts' names must not be seen outside.
    run("mount", "-t", "tmpfs", "none", "/run")
    topology = folder / "ring.json"
    topology.write_text(NETWORK.model_dump_json())
    log = (folder / "controller.log").open("w")
    command = [sys.executable, "-m", "controller.cli", "--topology", str(topology), "--log-format", "json"]
    controller = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, env=dict(os.environ)
    )
    assert controller.stdout is not None
    addresses = json.loads(controller.stdout.readline())
    seen: dict[str, Any] = {}
    with PrivateInstance(folder / "ovs", datapath="netdev") as ovs:
        for name, ports in make_links().items():
            ovs.add_bridge(
                name,
                datapath_id=NETWORK.datapath_id(name),
                ports=ports,
                controllers=[("127.0.0.1", 6653)],
            )
        observe(ovs, Rest(addresses["rest"][0]), seen)
        start = time.monotonic()
        controller.terminate()
        seen["exit_status"] = controller.wait(PATIENCE_S)
        seen["stopped_after_s"] = time.monotonic() - start
    return seen


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
