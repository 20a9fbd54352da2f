"""Two controllers of the same Open vSwitch bridges, started by mistake: one decides, the other stands by."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import topologies
from switch.ovs import PrivateInstance
from tests.controller.openflow.ovs_lab import Rest, make_links, run, start_controller
from tests.fakes.waiting import wait_until
from tests.sandbox import run_in_sandbox

NETWORK = topologies.load("line:2")
OPENFLOW = {"first": 6653, "second": 6654}


def start(folder: Path, name: str) -> tuple[subprocess.Popen[str], Rest]:
    ports = {"--openflow": OPENFLOW[name], "--rest": 0, "--grpc": 0}
    options = [word for option, port in ports.items() for word in (option, f"127.0.0.1:{port}")]
    process, address = start_controller(folder, *options)
    return process, Rest(address)


def observe(place: str) -> dict[str, Any]:
    folder, seen = Path(place), {}
    run("mount", "-t", "tmpfs", "none", "/run")
    (folder / "network.json").write_text(NETWORK.model_dump_json())
    first, rest = start(folder, "first")
    with PrivateInstance(folder / "ovs", datapath="netdev") as ovs:
        controllers = [("127.0.0.1", port) for port in OPENFLOW.values()]
        for name, ports in make_links(NETWORK).items():
            ovs.add_bridge(name, datapath_id=NETWORK.datapath_id(name), ports=ports, controllers=controllers)
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
@pytest.mark.timeout(600)
def test_one_decides_and_the_other_stands_by(tmp_path: Path) -> None:
    seen = run_in_sandbox(observe, str(tmp_path), timeout=180.0)
    assert (seen["first"]["status"], seen["first"]["ready"]) == ("ok", True)
    assert (seen["second"]["status"], seen["second"]["ready"]) == ("degraded", False)
    assert all("is controlled by another controller" in fault for fault in seen["second"]["faults"])
    assert (seen["after"]["status"], seen["after"]["ready"]) == ("ok", True)
    assert seen["taken_over_after_s"] >= 6.0, "it waits for the first, which might be slow"
