"""Two controllers of the same Open vSwitch bridges, started by mistake: one decides, the other stands by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import topologies
from switch.ovs import Port, PrivateInstance
from tests.controller.openflow.ovs_lab import Rest, run
from tests.fakes.waiting import wait_until
from tests.sandbox import ROOT, run_in_sandbox

NETWORK = topologies.load("line:2")
OPENFLOW = {"first": 6653, "second": 6654}


def start(folder: Path, name: str) -> tuple[subprocess.Popen[str], Rest]:
    words = ["--openflow", f"127.0.0.1:{OPENFLOW[name]}", "--rest", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    words += ["--topology", "line:2", "--store", "none", "--probe-interval", "1", "--silence", "10"]
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "controller.cli", *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
    assert process.stdout is not None
    return process, Rest(json.loads(process.stdout.readline())["rest"][0])


def observe(place: str) -> dict[str, Any]:
    folder, seen = Path(place), {}
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    run("ip", "link", "set", "lo", "up")
    first, rest = start(folder, "first")
    with PrivateInstance(folder / "ovs", datapath="netdev") as ovs:
        ports: dict[str, list[Port]] = {name: [] for name in NETWORK.switches}
        for link in NETWORK.links:
            names = [f"{one}-{other}" for one, other in (link.ends, link.ends[::-1])]
            run("ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1])
            for name in names:
                run("ip", "link", "set", name, "up")
        for arc in NETWORK.arcs():
            if arc.tail in ports:
                ports[arc.tail].append(Port(f"{arc.tail}-{arc.head}", arc.tail_port))
        controllers = [("127.0.0.1", port) for port in OPENFLOW.values()]
        for name in NETWORK.switches:
            ovs.add_bridge(
                name, datapath_id=NETWORK.datapath_id(name), ports=ports[name], controllers=controllers
            )
        wait_until(rest.ready, "the first to be ready")
        second, other = start(folder, "second")

        def held() -> bool:
            return len(other.call("GET", "/health")["faults"]) == len(NETWORK.switches)

        wait_until(held, "the second to stand by")
        seen["second"] = other.call("GET", "/health")
        seen["first"] = rest.call("GET", "/health")
        first.kill()
        first.wait()
        seen["taken_over_after_s"] = wait_until(other.ready, "the second to take over")
        seen["after"] = other.call("GET", "/health")
        again, returned = start(folder, "first")
        wait_until(lambda: returned.call("GET", "/health")["faults"], "the first to stand by")
        second.terminate()
        second.wait()
        seen["followed_after_s"] = wait_until(returned.ready, "the first to follow at once")
        again.terminate()
        again.wait()
    return seen


@pytest.mark.root
@pytest.mark.timeout(200)
def test_one_decides_and_the_other_stands_by(tmp_path: Path) -> None:
    seen = run_in_sandbox(observe, str(tmp_path), timeout=180.0)
    assert (seen["first"]["status"], seen["first"]["ready"]) == ("ok", True)
    assert (seen["second"]["status"], seen["second"]["ready"]) == ("degraded", False)
    assert all("is controlled by another controller" in fault for fault in seen["second"]["faults"])
    assert (seen["after"]["status"], seen["after"]["ready"]) == ("ok", True)
    assert seen["taken_over_after_s"] >= 6.0, "it waits for the first, which might be slow"
