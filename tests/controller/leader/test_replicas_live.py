"""Three controllers, three etcd servers and real Open vSwitch: who takes over touches no rule."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import topologies
from benchmarks.drills.replicas import Replica, Replicas, changed_rules, rule_ages
from controller.cli import main
from switch.ovs import PrivateInstance
from tests.controller.openflow.ovs_lab import make_links
from tests.fakes.etcd_servers import is_there
from tests.fakes.waiting import wait_until
from tests.sandbox import run_in_sandbox

NETWORK = topologies.load("line:2")
REQUEST = {
    "source": "h1",
    "destination": "h2",
    "destination_port": 5001,
    "rate_bps": 1e6,
    "packet_bytes": 1000,
    "lease_s": 600,
}


def ready(replicas: Replicas, *without: Replica) -> Replica:
    """Wait for a leader that finds the network ready."""
    return asked_of_leader(replicas, lambda leader: leader.ask("GET", "/health")["ready"], *without)[0]


def request(replica: Replica, port: int) -> Any:
    return replica.ask("POST", "/flows", {**REQUEST, "source_ports": [port]})


def asked_of_leader(
    replicas: Replicas, ask: Callable[[Replica], Any], *without: Replica
) -> tuple[Replica, Any]:
    """Ask who leads until it answers; on a busy machine its lease may end before it is asked."""
    answered: list[tuple[Replica, Any]] = []

    def is_answered() -> bool:
        leader = replicas.leader(*without)
        with suppress(OSError):
            if answer := ask(leader):
                answered.append((leader, answer))
        return bool(answered)

    wait_until(is_answered, "the leader's answer")
    return answered[0]


def flows(replica: Replica) -> list[str]:
    return sorted(flow["flow_id"] for flow in replica.ask("GET", "/flows"))


def observe(place: str) -> dict[str, Any]:
    folder = Path(place)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    with ExitStack() as stack, PrivateInstance(folder / "ovs", datapath="netdev") as ovs:
        options = ("--topology", "line:2", "--probe-interval", "1", "--silence", "20")
        replicas = Replicas(folder, stack, *options)
        controllers = [each.openflow for each in replicas.all]
        for name, ports in make_links(NETWORK).items():
            ovs.add_bridge(name, datapath_id=NETWORK.datapath_id(name), ports=ports, controllers=controllers)
        ready(replicas)
        first, flow = asked_of_leader(replicas, lambda leader: request(leader, 40001))
        follower = next(each for each in replicas.all if each is not first)
        granted = [flow["flow_id"]]
        seen: dict[str, Any] = {"sent_on": sent_on(follower), "leader": first.address}
        wait_until(lambda: flows(follower) == granted, "a follower to know the flow")
        before = rule_ages(ovs, NETWORK.switches)
        last_id = last_event_id(first)
        changed = seen["changed"] = {}

        first.kill()
        second = ready(replicas)
        changed["kill"] = changed_rules(before, rule_ages(ovs, NETWORK.switches))
        seen["kept"] = flows(second) == granted
        seen["resumed"] = [last_id, *ids_after(second, last_id, 3)]
        first.start()
        second.freeze()
        ready(replicas, second)
        changed["freeze"] = changed_rules(before, rule_ages(ovs, NETWORK.switches))
        third, flow = asked_of_leader(replicas, lambda leader: request(leader, 40003), second)
        granted = sorted([*granted, flow["flow_id"]])
        second.go_on()
        wait_until(lambda: second.standing() == "follower", "it to follow")
        wait_until(lambda: flows(second) == granted, "it to know both flows")
        before = rule_ages(ovs, NETWORK.switches)
        seen["status"] = main(["step-down", f"127.0.0.1:1, http://{second.address}"])
        fourth = ready(replicas, third)
        changed["step-down"] = changed_rules(before, rule_ages(ovs, NETWORK.switches))
        seen["kept_then"] = flows(fourth) == granted
        for each in replicas.all:
            each.process.terminate()
        seen["statuses"] = [each.process.wait(30) for each in replicas.all]
    return seen


def last_event_id(replica: Replica) -> str:
    with urllib.request.urlopen(f"http://{replica.address}/v1/flows", timeout=10) as answer:
        return str(answer.headers["Last-Event-ID"])


def ids_after(replica: Replica, event_id: str, count: int) -> list[str]:
    """Return the ids of the events that follow, as a client hears them that resumes at another replica."""
    ids: list[str] = []
    place = f"http://{replica.address}/v1/events?last_event_id={event_id}"
    with urllib.request.urlopen(place, timeout=30) as answer:
        while len(ids) < count:
            line = answer.readline()
            assert b"history_lost" not in line, "events were lost"
            if line.startswith(b"id:"):
                ids.append(line[3:].strip().decode())
    return ids


def sent_on(follower: Replica) -> tuple[int, str]:
    """Return what a follower answers to a request."""
    try:
        request(follower, 40002)
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Location"]
    raise AssertionError("a follower has granted a flow")


@pytest.mark.root
@pytest.mark.timeout(600)
@pytest.mark.skipif(not is_there(), reason="etcd is not installed (package etcd-server)")
def test_another_takes_over_and_touches_no_rule(tmp_path: Path) -> None:
    seen = run_in_sandbox(observe, str(tmp_path), timeout=280.0)
    assert seen["sent_on"] == [307, f"http://{seen['leader']}/v1/flows"]
    assert seen["changed"] == {"kill": 0, "freeze": 0, "step-down": 0}
    assert seen["kept"] and seen["kept_then"]
    store, number = seen["resumed"][0].rsplit("-", 1)
    assert seen["resumed"] == [f"{store}-{int(number) + k}" for k in range(4)], "no gap and no repeat"
    assert seen["status"] == 0 and seen["statuses"] == [0, 0, 0]
