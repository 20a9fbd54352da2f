"""Three controllers, etcd and real Open vSwitch: the leader is killed, frozen, and told to step down."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import topologies
from switch.ovs import PrivateInstance
from tests.controller.openflow.ovs_lab import Rest, make_links
from tests.fakes.etcd_servers import EtcdServers, is_there
from tests.fakes.waiting import wait_until
from tests.sandbox import ROOT, run_in_sandbox

NETWORK = topologies.load("line:2")
REQUEST = {
    "source": "h1",
    "destination": "h2",
    "destination_port": 5001,
    "rate_bps": 1e6,
    "packet_bytes": 1000,
    "lease_s": 600,
}


class Replica:
    """A controller, started again with the same addresses."""

    def __init__(self, folder: Path, number: int, store: str) -> None:
        self.openflow, self.address = 6653 + number, f"127.0.0.1:{8080 + number}"
        self.rest = Rest(self.address)
        self.log = folder / f"controller{number}.log"
        self._words = ["--openflow", f"127.0.0.1:{self.openflow}", "--rest", self.address]
        self._words += ["--grpc", f"127.0.0.1:{50051 + number}", "--topology", "line:2", "--store", store]
        self._words += ["--probe-interval", "1", "--silence", "20"]
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "controller.cli", *self._words],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def leads(self) -> bool:
        try:
            return bool(self.rest.call("GET", "/leader")["standing"] == "leader")
        except OSError:
            return False


def leader_of(replicas: list[Replica]) -> Replica | None:
    return next((each for each in replicas if each.process.poll() is None and each.leads()), None)


def wait_for_leader(replicas: list[Replica]) -> Replica:
    wait_until(lambda: leader_of(replicas) is not None, "a replica to lead")
    leader = leader_of(replicas)
    assert leader is not None
    wait_until(leader.rest.ready, "the network to be ready")
    return leader


def rules(ovs: PrivateInstance) -> dict[str, float]:
    """Return each rule of each bridge, without counters, and how old it is."""
    found = {}
    for name in NETWORK.switches:
        for line in ovs.ofctl("dump-flows", name).splitlines():
            if "duration" in line:
                age_s = float(re.findall(r"duration=([\d.]+)s", line)[0])
                key = re.sub(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*,? ?", "", line)
                found[f"{name} {key}"] = age_s
    return found


def request(replica: Replica, port: int) -> tuple[int, Any]:
    """Request a flow; returns the status and the answer."""
    body = json.dumps(REQUEST | {"source_ports": [port]}).encode()
    asked = urllib.request.Request(
        f"http://{replica.address}/v1/flows", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {**json.load(error), "location": error.headers.get("Location")}


def observe(place: str) -> dict[str, Any]:
    folder = Path(place)
    seen: dict[str, Any] = {}
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    with EtcdServers(folder, 3) as etcd, PrivateInstance(folder / "ovs", datapath="netdev") as ovs:
        replicas = [Replica(folder, number, etcd.store) for number in range(3)]
        controllers = [("127.0.0.1", replica.openflow) for replica in replicas]
        for name, ports in make_links(NETWORK).items():
            ovs.add_bridge(name, datapath_id=NETWORK.datapath_id(name), ports=ports, controllers=controllers)
        leader = wait_for_leader(replicas)
        followers = [each for each in replicas if each is not leader]
        seen["granted"] = request(leader, 40001)
        seen["sent_on"] = request(followers[0], 40002), leader.address
        wait_until(lambda: len(followers[0].rest.call("GET", "/flows")) == 1, "a follower to know the flow")
        before = rules(ovs)

        leader.kill()
        after_kill = wait_for_leader(followers)
        seen["after_kill"] = changes(before, rules(ovs)), after_kill.rest.call("GET", "/flows")
        leader.start()
        after_kill.process.send_signal(signal.SIGSTOP)
        others = [each for each in replicas if each is not after_kill]
        after_freeze = wait_for_leader(others)
        seen["granted_then"] = request(after_freeze, 40003)
        after_kill.process.send_signal(signal.SIGCONT)
        wait_until(lambda: after_kill.rest.call("GET", "/leader")["standing"] == "follower", "it to follow")
        wait_until(lambda: len(after_kill.rest.call("GET", "/flows")) == 2, "it to know both flows")
        seen["after_freeze"] = changes(before, rules(ovs))

        after_freeze.rest.call("POST", "/leader/step-down")
        last = wait_for_leader([each for each in replicas if each is not after_freeze])
        seen["after_step_down"] = changes(before, rules(ovs)), last.rest.call("GET", "/flows")
        for each in replicas:
            each.process.terminate()
        seen["statuses"] = [each.process.wait(30) for each in replicas]
    return seen


def changes(before: dict[str, float], now: dict[str, float]) -> int:
    """Return how many of the rules that were there are gone, or were put there again."""
    return sum(rule not in now or now[rule] < age_s for rule, age_s in before.items())


@pytest.mark.root
@pytest.mark.timeout(300)
@pytest.mark.skipif(not is_there(), reason="etcd is not installed (package etcd-server)")
def test_another_takes_over_and_touches_no_rule(tmp_path: Path) -> None:
    seen = run_in_sandbox(observe, str(tmp_path), timeout=280.0)
    assert seen["granted"][0] == 201
    (status, sent_on), leader = seen["sent_on"]
    assert (status, sent_on["location"]) == (307, f"http://{leader}/v1/flows")
    changed, flows = seen["after_kill"]
    assert (changed, len(flows)) == (0, 1)
    assert flows[0]["flow_id"] == seen["granted"][1]["flow_id"]
    assert seen["granted_then"][0] == 201
    assert seen["after_freeze"] == 0
    changed, flows = seen["after_step_down"]
    assert (changed, len(flows)) == (0, 2)
    assert seen["statuses"] == [0, 0, 0]
