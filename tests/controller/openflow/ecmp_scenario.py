"""Equal-cost multipath by real select groups over four equal paths: what happens there.

It runs in a sandbox. Hosts A1-A4 open TCP connections to B1-B4;
watched is by which middle switch the segments of each connection come to the other side, both ways.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import topologies
from tests.controller.openflow.frames import Watch, watching
from tests.controller.openflow.ovs_lab import Lab, in_host, laboratory, run
from tests.fakes.waiting import TIMEOUT_S, wait_until

MIDDLES = ["M1", "M2", "M3", "M4"]
PAIRS = [("A1", "B1"), ("A2", "B2"), ("A3", "B3"), ("A4", "B4")]
CONNECTIONS = 32  # of each pair
WRITES = 20
FIRST_PORT = 41000

ECHO = """
import socket, threading
listener = socket.create_server(("0.0.0.0", 5001), backlog=128)
print("listening", flush=True)

def serve(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""

CLIENT = """
import socket, sys, time
address, first, count, writes, pause_s = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
open_ones = []
for port in range(first, first + count):
    source = ("0.0.0.0", port)
    open_ones.append(socket.create_connection((address, 5001), timeout=20, source_address=source))
total = 0
for _ in range(writes):
    for connection in open_ones:
        connection.sendall(bytes(500))
    for connection in open_ones:
        rest = 500
        while rest:
            rest -= len(connection.recv(rest))
        total += 500
    time.sleep(pause_s)
print(total)
"""


def paths_of(watch: Watch, side: str) -> dict[int, Counter[str]]:
    """Return how many segments of each connection (by its A port) came to a side by each middle switch."""
    packets: dict[int, Counter[str]] = {}
    for sighting, count in watch.seen.items():
        end, middle = sighting.interface.split("-")
        if end == side:
            port = sighting.source_port if side == "R" else sighting.destination_port
            packets.setdefault(port, Counter())[middle] += count
    return packets


def converse(lab: Lab, first_port: int, connections: int, writes: int, pause_s: float = 0.01) -> int:
    """Let all pairs echo over this many connections each, at once; return the bytes that came back."""
    clients = []
    for index, (sender, receiver) in enumerate(PAIRS):
        first = first_port + index * connections
        arguments = [lab.network.host_ip(receiver), *map(str, (first, connections, writes, pause_s))]
        command = in_host(sender, sys.executable, "-c", CLIENT, *arguments)
        clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    return sum(int(client.communicate(timeout=TIMEOUT_S)[0]) for client in clients)


def groups(lab: Lab) -> dict[str, int]:
    """Return how many paths the select groups of each switch lead to."""
    dumps = {name: lab.ovs.ofctl("dump-groups", name).splitlines() for name in lab.network.switches}
    chosen = {name: [line for line in dump if "type=select" in line] for name, dump in dumps.items()}
    return {name: len(set(re.findall(r"group:(\d+)", str(lines)))) for name, lines in chosen.items()}


def summary(watch: Watch) -> dict[str, Any]:
    """Return, for each direction, connections by path, and those that were seen on several."""
    figures: dict[str, Any] = {}
    for side, name in (("R", "there"), ("L", "back")):
        paths = paths_of(watch, side)
        figures[name] = Counter(next(iter(counts)) for counts in paths.values() if len(counts) == 1)
        figures[f"{name}_on_several"] = {port: counts for port, counts in paths.items() if len(counts) > 1}
        figures[f"{name}_least_segments"] = min(sum(counts.values()) for counts in paths.values())
    return figures


def observe(lab: Lab, seen: dict[str, Any]) -> None:
    interfaces = [f"{end}-{middle}" for end in "LR" for middle in MIDDLES]
    seen["groups_before"] = groups(lab)
    with watching(interfaces) as watch:
        seen["bytes"] = converse(lab, FIRST_PORT, CONNECTIONS, WRITES)
        time.sleep(0.3)
    seen["groups"] = groups(lab)
    seen["spread"] = summary(watch)
    run("ip", "link", "set", "L-M1", "down")
    wait_until(lambda: groups(lab)["L"] == 3, "the group to shrink")
    interfaces.remove("L-M1")  # one that is down cannot be watched
    with watching(interfaces) as watch:
        seen["bytes_without_m1"] = converse(lab, FIRST_PORT + 1000, 8, 5)
        time.sleep(0.3)
    seen["without_m1"] = summary(watch)
    run("ip", "link", "set", "L-M1", "up")
    wait_until(lab.rest.ready, "the link to be found again")
    wait_until(lambda: groups(lab)["L"] == 4, "the group to grow")
    seen["groups_at_the_end"] = groups(lab)


def main(place: str) -> dict[str, Any]:
    folder, seen = Path(place), dict[str, Any]()
    with laboratory(topologies.load("parallel4"), folder, "--default-routing", "ecmp") as lab:
        wait_until(lab.rest.ready, "the controller to be ready")
        servers = [
            subprocess.Popen(in_host(host, sys.executable, "-c", ECHO), stdout=subprocess.PIPE, text=True)
            for _, host in PAIRS
        ]
        try:
            for server in servers:
                assert server.stdout is not None
                server.stdout.readline()
            observe(lab, seen)
        finally:
            for server in servers:
                server.kill()
                server.communicate()
        lab.controller.terminate()
        lab.controller.wait(TIMEOUT_S)
    return seen
