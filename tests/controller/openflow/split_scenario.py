"""Split flows over the butterfly of Open vSwitch bridges: what happens there.

It runs in a sandbox. Stamped frames are sent by a raw socket in the
source's namespace, as an XDP splitter in front of the ingress port would stamp them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import topologies
from tests.controller.openflow.frames import Watch, tcp_frame, watching
from tests.controller.openflow.ovs_lab import Lab, in_host, laboratory, run
from tests.fakes.waiting import TIMEOUT_S, wait_until

UPPER = ["T0", "S0", "S4", "T2"]
MIDDLE = ["T0", "S0", "S2", "S3", "S4", "T2"]
FRAMES = 200
INTERFACES = {"T0": "T0-S0", "T2": "T2-S4"}
INTO_S4 = {"S4-S0": "upper", "S4-S3": "middle"}

SENDER = """
import socket, sys, time
interface, count = sys.argv[1], int(sys.argv[2])
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind((interface, 0))
# Not in bursts: until the first packet of its kind is through, the others wait in a short queue.
for number in range(count):
    for frame in sys.argv[3:]:
        sender.send(bytes.fromhex(frame))
        time.sleep(0.2 if number == 0 else 0.001)
"""

RECEIVER = """
import json, sys, time
from tests.controller.openflow.frames import watching
with watching([sys.argv[1]]) as watch:
    print("watching", flush=True)
    sys.stdin.read()
    time.sleep(0.5)
print(json.dumps([[s.source_mac, s.source_port, n] for s, n in watch.seen.items()]))
"""


def request(lab: Lab, splitting: str, source_port: int, rates: tuple[float, float], **more: Any) -> Any:
    paths = [{"nodes": nodes, "rate_bps": rate} for nodes, rate in zip((UPPER, MIDDLE), rates, strict=True)]
    body = {"source": "T0", "destination": "T2", "destination_port": 5001, "packet_bytes": 590}
    body |= {"source_ports": [source_port], "splitting": splitting, "paths": paths, **more}
    return lab.rest.call("POST", "/flows", body)


def ways(watch: Watch, source_port: int) -> dict[str, Counter[str]]:
    """Return how many segments of a connection came into S4 by which way, by their Ethernet source."""
    packets: dict[str, Counter[str]] = {}
    for sighting, count in watch.seen.items():
        if sighting.interface in INTO_S4 and sighting.source_port == source_port:
            packets.setdefault(sighting.source_mac, Counter())[INTO_S4[sighting.interface]] += count
    return packets


def send(host: str, frames: list[bytes]) -> None:
    arguments = [INTERFACES[host], str(FRAMES), *(frame.hex() for frame in frames)]
    run(*in_host(host, sys.executable, "-c", SENDER, *arguments))


def has_seen(watch: Watch, frames: int) -> bool:
    return sum(watch.seen.values()) >= frames


def leftovers(lab: Lab) -> list[str]:
    """Return the rules of flows and the groups that are in any switch, but those that guard ports."""
    lines_left = []
    for name in lab.network.switches:
        flows = lab.ovs.ofctl("dump-flows", name, "cookie=0x4d53000200000000/0xffffffff00000000")
        groups = lab.ovs.ofctl("dump-groups", name)
        lines = [line for line in (flows + groups).splitlines() if "cookie=" in line or "group_id" in line]
        lines_left += [line for line in lines if "type=ff" not in line]
    return lines_left


def stamped_frames(lab: Lab, seen: dict[str, Any]) -> None:
    network = lab.network
    flow = request(lab, "packets", 40001, (1e6, 3e6), ack_path="reverse:1")
    split = flow["split"]
    there = (split["source_ip"], split["destination_ip"])
    mac = network.host_mac
    sources = (*split["stamps"], mac("T0"))
    seen["stamped"] = {}

    def send_all() -> None:
        for source in sources:
            with watching(list(INTO_S4)) as watch:
                send("T0", [tcp_frame(source, mac("T2"), there, (40001, 5001))])
                wait_until(partial(has_seen, watch, FRAMES), "all frames")
            seen["stamped"][source] = dict(ways(watch, 40001)[mac("T0")])

    ack = tcp_frame(mac("T2"), mac("T0"), there[::-1], (5001, 40001))
    # The sight of T2 is taken at the far end of its link, in its own namespace.
    seen["at_t2"] = sight_in_host("T2", send_all)
    with watching(["S0-S4", "S0-S2"]) as watch:
        send("T2", [ack])
        wait_until(partial(has_seen, watch, FRAMES), "all frames")
    seen["stamps"] = split["stamps"]
    seen["own_mac"] = mac("T0")
    seen["acks_into_s0"] = {s.interface: n for s, n in watch.seen.items() if s.source_port == 5001}
    seen["bytes_before_the_splitter"] = lab.transfer("T0", "T2", 40001)
    seen["flow_while_running"] = lab.rest.call("GET", f"/flows/{flow['flow_id']}")["split"] == split
    lab.rest.call("DELETE", f"/flows/{flow['flow_id']}")
    wait_until(lambda: not leftovers(lab), "the rules to go")


def sight_in_host(host: str, act: Callable[[], None]) -> list[list[Any]]:
    """Return what comes in at a host while something happens, as [source MAC, source port, count]."""
    process = subprocess.Popen(
        in_host(host, sys.executable, "-c", RECEIVER, INTERFACES[host]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    act()
    output, _ = process.communicate(timeout=TIMEOUT_S)
    sightings: list[list[Any]] = json.loads(output)
    return sightings


def group(lab: Lab, seen: dict[str, Any]) -> None:
    flow = request(lab, "group", 40002, (3e6, 1e6))
    with watching(list(INTO_S4)) as watch:
        seen["bytes_by_group"] = lab.transfer("T0", "T2", 40002)
    seen["by_group"] = {name: dict(counts) for name, counts in ways(watch, 40002).items()}
    seen["group_in_switch"] = lab.ovs.ofctl("dump-groups", "S0")
    lab.rest.call("DELETE", f"/flows/{flow['flow_id']}")
    wait_until(lambda: not leftovers(lab), "the rules and the group to go")
    body = {"source": "T0", "destination": "T2", "destination_port": 5001, "packet_bytes": 590}
    body |= {"source_ports": [40003], "splitting": "group", "rate_bps": 2e6, "streams": 2}
    flow = lab.rest.call("POST", "/flows", body)
    seen["group_before_change"] = lab.ovs.ofctl("dump-groups", "S0")
    changed = lab.rest.call("PATCH", f"/flows/{flow['flow_id']}", {"rate_bps": 30e6})
    seen["shares_after_change"] = changed["split"]["shares"]
    wait_until(lambda: lab.ovs.ofctl("dump-groups", "S0") != seen["group_before_change"], "the new weights")
    seen["group_after_change"] = lab.ovs.ofctl("dump-groups", "S0")
    seen["bytes_after_change"] = lab.transfer("T0", "T2", 40003)
    lab.rest.call("DELETE", f"/flows/{flow['flow_id']}")
    wait_until(lambda: not leftovers(lab), "the rules and the group to go")


def main(place: str) -> dict[str, Any]:
    folder, seen = Path(place), dict[str, Any]()
    with laboratory(topologies.load("butterfly"), folder) as lab:
        wait_until(lab.rest.ready, "the controller to be ready")
        stamped_frames(lab, seen)
        group(lab, seen)
        seen["health"] = lab.rest.call("GET", "/health")["status"]
        lab.controller.terminate()
        lab.controller.wait(60)
    return seen
