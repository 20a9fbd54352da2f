"""A ring of three Open vSwitch bridges under the real controller: what happens there.

It runs in a sandbox, with which everything that it makes ends. The link A-B
runs through a Linux bridge in its middle, so that it can be cut without either switch's noticing. Frames
of H2 have a VLAN tag at its port of B: another Open vSwitch bridge writes it and takes it off.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from controller.model.rules import TABLE_LABEL, TABLE_PINNED
from switch.ovs import Port, PrivateInstance
from tests.controller.openflow.ovs_lab import (
    Lab,
    in_host,
    join_directly,
    laboratory,
    run,
)
from tests.fakes.waiting import TIMEOUT_S, wait_until
from topologies.model import Network

BURST_S = 0.1
VLAN = 7
METER_OF_FLOW = "kbps"
DETOUR = ["H1", "A", "C", "B", "H2"]

NETWORK = Network.model_validate(
    {
        "name": "ring",
        "nodes": [{"name": name, "kind": "switch"} for name in "ABC"]
        + [{"name": "H1", "kind": "host"}, {"name": "H2", "kind": "host", "vlan": VLAN}],
        "links": [
            {"ends": ends, "rate_bps": 10e6, "delay_us": 1000}
            for ends in (("A", "B"), ("B", "C"), ("A", "C"), ("H1", "A"), ("H2", "B"))
        ],
    }
)


def join(one: str, other: str) -> None:
    """Make the two ends of a link; those of A-B are joined by a bridge, those of H2-B by `tag_frames`."""
    if not {one, other} & {"A-B", "H2-B"}:
        join_directly(one, other)
        return
    for name in (one, other):
        join_directly(name, f"{name}-far")
        run("ip", "link", "set", f"{name}-far", "up")
    if "A-B" in (one, other):
        run("ip", "link", "add", "middle", "type", "bridge", "group_fwd_mask", "0x4000")  # lets LLDP pass
        for name in (one, other):
            run("ip", "link", "set", f"{name}-far", "master", "middle")
        run("ip", "link", "set", "middle", "up")


def tag_frames(ovs: PrivateInstance) -> None:
    """Join H2 and B by a bridge that writes H2's tag, and lets no other frames pass to H2."""
    ovs.add_bridge("tagger", datapath_id=99, ports=[Port("H2-B-far", 1), Port("B-H2-far", 2)])
    present = 0x1000
    for rule in (
        f"in_port=1,actions=push_vlan:0x8100,set_field:{VLAN | present}->vlan_vid,output:2",
        f"in_port=2,dl_vlan={VLAN},actions=pop_vlan,output:1",
    ):
        ovs.ofctl("add-flow", "tagger", rule)


def ping(ip: str = NETWORK.host_ip("H2")) -> bool:
    command = in_host("H1", "ping", "-c", "3", "-i", "0.2", "-W", "5", ip)
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False).returncode == 0


SINK = """
import socket, sys
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("0.0.0.0", 5002))
sink.settimeout(20)
print("listening", flush=True)
total = 0
while size := len(sink.recv(2000)):
    total += size
print(total)
"""

SOURCE = """
import socket, sys, time
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
source.bind(("0.0.0.0", 40003))
source.connect((sys.argv[1], 5002))
start = time.monotonic()
for packet in range(1500):  # 6 Mbit/s
    source.send(bytes(1000))
    time.sleep(max(0, start + packet / 750 - time.monotonic()))
took_s = time.monotonic() - start
print(took_s)
try:
    while True:
        time.sleep(0.1)
        source.send(b"")
except ConnectionRefusedError:
    pass  # the sink has ended
"""


def send_too_much() -> tuple[float, int]:
    """Send datagrams faster than their flow may; returns for how long, and the bytes that arrive."""
    sink = subprocess.Popen(in_host("H2", sys.executable, "-c", SINK), stdout=subprocess.PIPE, text=True)
    assert sink.stdout is not None
    sink.stdout.readline()
    took_s = float(run(*in_host("H1", sys.executable, "-c", SOURCE, NETWORK.host_ip("H2"))))
    return took_s, int(sink.communicate(timeout=TIMEOUT_S)[0])


def find_each_other_alone() -> dict[str, bool]:
    """Let hosts that have forgotten each other's MAC addresses ping without a controller."""
    for host in ("H1", "H2"):
        run(*in_host(host, "ip", "neigh", "flush", "all"))
    return {ip: ping(ip) for ip in NETWORK.host_ips("H2").values()}


def pinned_packets(ovs: PrivateInstance) -> dict[str, list[int]]:
    """Return the packet counters of the pinned rules of each switch."""
    packets = {}
    for name in NETWORK.switches:
        rules = [
            line
            for line in ovs.ofctl("dump-flows", name, f"table={TABLE_PINNED}").splitlines()
            if "tcp" in line
        ]
        packets[name] = [int(match[1]) for line in rules if (match := re.search(r"n_packets=(\d+)", line))]
    return packets


def observe(lab: Lab, seen: dict[str, Any]) -> None:
    rest, ovs = lab.rest, lab.ovs
    tag_frames(ovs)
    seen["ready_after_s"] = wait_until(rest.ready, "the controller to be ready")
    seen["ping"] = ping()
    body = {"source": "H1", "destination": "H2", "destination_port": 5001, "source_ports": [40001]}
    flow = rest.call("POST", "/flows", body | {"paths": [{"nodes": DETOUR, "rate_bps": 1e6}]})
    seen["rules_installed"] = {name: len(counts) for name, counts in pinned_packets(ovs).items()}
    seen["bytes_over_pinned_path"] = lab.transfer("H1", "H2", 40001)
    # Open vSwitch brings the counters of its fast path up to date now and then.
    wait_until(
        lambda: all(count > 2 for counts in pinned_packets(ovs).values() for count in counts),
        "packets on the path",
    )
    seen["pinned_packets"] = pinned_packets(ovs)
    labels = ovs.ofctl("dump-flows", "C", f"table={TABLE_LABEL}")
    seen["packets_by_c"] = sum(int(count) for count in re.findall(r"n_packets=(\d+)", labels))
    shown = {name: rest.call("GET", f"/switches/{name}/rules")["rules"] for name in NETWORK.switches}
    seen["rules_without_counters"] = [r for rules in shown.values() for r in rules if r["packets"] is None]
    seen["shown_packets"] = {
        name: [rule["packets"] for rule in rules if rule["purpose"] == "flow"]
        for name, rules in shown.items()
    }
    rest.call("DELETE", f"/flows/{flow['flow_id']}")
    udp = {"destination_port": 5002, "source_ports": [40003], "protocol": "udp", "packet_bytes": 1042}
    flow = rest.call("POST", "/flows", body | udp | {"rate_bps": 1e6})
    seen["policed"] = send_too_much()
    rest.call("DELETE", f"/flows/{flow['flow_id']}")
    wait_until(lambda: METER_OF_FLOW not in ovs.ofctl("dump-meters", "A"), "the meter to go")
    # The removal is not confirmed: give the switches a moment.
    wait_until(lambda: not any(pinned_packets(ovs).values()), "the rules to go")
    seen["bytes_over_default_route"] = lab.transfer("H1", "H2", 40002)
    run("ip", "link", "set", "A-C", "down")
    seen["port_down_noticed_after_s"] = wait_until(lambda: "A-C" in rest.links_down(), "the port to be down")
    run("ip", "link", "set", "A-C", "up")
    seen["port_up_noticed_after_s"] = wait_until(rest.ready, "the link to be found again")
    run("ip", "link", "set", "A-B-far", "nomaster")
    seen["silent_loss_noticed_after_s"] = wait_until(lambda: "A-B" in rest.links_down(), "the silent loss")
    # The notification does not wait for the switches to confirm their rules.
    seen["ping_around_the_loss_after_s"] = wait_until(ping, "a ping around the loss")
    run("ip", "link", "set", "A-B-far", "master", "middle")
    wait_until(rest.ready, "the link to be found again")
    ovs.remove_bridge("C")
    seen["switch_loss_noticed_after_s"] = wait_until(
        lambda: not rest.call("GET", "/health")["switches"][2]["connected"], "the loss of the switch"
    )


def main(place: str) -> dict[str, Any]:
    folder, seen = Path(place), dict[str, Any]()
    (folder / "policing.toml").write_text(f"[routing]\npolicing_burst_s = {BURST_S}\n")
    with laboratory(NETWORK, folder, "--config", str(folder / "policing.toml"), join=join) as lab:
        observe(lab, seen)
        seen["ping_over_ipv6"] = ping(NETWORK.host_ip("H2", 6))
        start = time.monotonic()
        lab.controller.terminate()
        seen["exit_status"] = lab.controller.wait(TIMEOUT_S)
        seen["stopped_after_s"] = time.monotonic() - start
        seen["pings_without_controller"] = find_each_other_alone()
    return seen
