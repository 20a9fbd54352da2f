"""Private instances of Open vSwitch, each in a sandbox of its own."""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from switch import Port, PrivateInstance, SwitchError
from switch.datapath import choose_datapath, kernel_datapath_available
from switch.errors import CommandFailed, DaemonFailed, SwitchUnavailable
from switch.packet_sockets import ROOM_BYTES
from tests.sandbox import run_in_sandbox, snapshot


def complaint_of(attempt: Callable[[], object]) -> str:
    try:
        return str(attempt())
    except SwitchError as error:
        return f"{type(error).__name__}: {error}"


def use_one_instance() -> dict[str, Any]:
    before = snapshot()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"], check=True)
        one = PrivateInstance(Path(folder) / "one", datapath="netdev")
        two = PrivateInstance(Path(folder) / "two", datapath="netdev")
        with one:
            one.add_bridge("S0", datapath_id=7, ports=[Port("v0", 5)], controllers=[("127.0.0.1", 6653)])
            one.add_bridge("S1", datapath_id=8)
            one.add_ports("S1", [Port("v1", 3)])
            outcome: dict[str, Any] = {
                "bridges": one.vsctl("list-br").split(),
                "shown": one.ofctl("show", "S0") + one.ofctl("show", "S1"),
                "controller": one.vsctl("get-controller", "S0").strip(),
                "flows": one.ofctl("dump-flows", "S0"),
                "datapath": one.datapath,
                "version": one.appctl("version"),
                "environment": one.environment,
                "second": complaint_of(two.start),
            }
            one.start()
            one.remove_bridge("S0", "not-there")
            outcome["removed"] = one.vsctl("list-br")
        two.stop()
        subprocess.run(["ip", "link", "del", "v0"], check=True)
    return {**outcome, "before": before, "after": snapshot()}


@pytest.mark.root
def test_bridges_are_what_was_asked_for_and_leave_nothing() -> None:
    outcome = run_in_sandbox(use_one_instance)
    assert outcome["bridges"] == ["S0", "S1"]
    assert "dpid:0000000000000007" in outcome["shown"]
    assert " 5(v0):" in outcome["shown"]
    assert " 3(v1):" in outcome["shown"]
    assert outcome["controller"] == "tcp:127.0.0.1:6653"
    assert "actions" not in outcome["flows"]
    assert outcome["datapath"] == "netdev"
    assert "ovs-vswitchd" in outcome["version"]
    assert outcome["removed"] == "S1\n"
    assert "unshare --net" in outcome["second"]
    assert outcome["after"] == outcome["before"]


def refuse() -> dict[str, str]:
    said: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        ovs = PrivateInstance(folder, datapath="netdev", realtime_priority=10)
        attempts: dict[str, Any] = {
            "not started": lambda: ovs.vsctl("show"),
            "start": ovs.start,
            "no such port": lambda: ovs.add_bridge("S0", datapath_id=1, ports=[Port("nowhere", 1)]),
            "first": lambda: ovs.add_bridge("S1", datapath_id=1),
            "second": lambda: ovs.add_bridge("S1", datapath_id=1),
            "no such command": lambda: ovs.vsctl("frobnicate"),
            "bridges": lambda: ovs.vsctl("list-br").strip(),
        }
        for name, attempt in attempts.items():
            said[name] = complaint_of(attempt)
        forwarder = int((Path(folder) / "ovs-vswitchd.pid").read_text())
        policy = subprocess.run(["chrt", "-p", str(forwarder)], check=True, capture_output=True, text=True)
        said["policy"] = policy.stdout
        subprocess.run(["kill", "-9", str(forwarder)], check=True)
        ovs._daemons["ovs-vswitchd"].wait()
        said["dead"] = complaint_of(lambda: ovs.vsctl("show"))
        said["same folder"] = complaint_of(PrivateInstance(folder, datapath="netdev").start)
        ovs.stop()
        said["left"] = " ".join(name for _, name in socket.if_nameindex())
        broken = Path(folder) / "broken"
        (broken / "ovs-vswitchd.log").mkdir(parents=True)
        said["broken"] = complaint_of(PrivateInstance(broken, datapath="netdev").start)
        deep = Path(folder) / ("x" * 100) / ("y" * 100)
        said["deep"] = complaint_of(PrivateInstance(deep, datapath="netdev").start)
    return said


@pytest.mark.root
def test_failures_say_what_is_wrong() -> None:
    said = run_in_sandbox(refuse)
    assert "call start() first" in said["not started"]
    assert said["start"] == said["first"] == "None"
    assert said["no such port"].startswith("CommandFailed: ")
    assert "nowhere" in said["no such port"]
    assert "bridge named S1 already exists" in said["second"]
    assert "frobnicate" in said["no such command"]
    assert said["bridges"] == "S1"
    assert "SCHED_FIFO" in said["policy"]
    assert said["dead"].startswith("DaemonFailed: ovs-vswitchd ended with status -9; the end of its log:")
    assert said["left"] == "lo"
    assert "choose another folder" in said["same folder"]
    assert said["broken"].startswith("DaemonFailed: ovs-vswitchd ")
    assert "ovs-vswitchd.log" in said["broken"]
    assert said["deep"] == "None"


def test_realtime_priority_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 to 99"):
        PrivateInstance(tmp_path, realtime_priority=100)


def test_datapath_is_that_of_the_machine() -> None:
    assert choose_datapath("netdev") == "netdev"
    if kernel_datapath_available():
        assert choose_datapath("auto") == choose_datapath("system") == "system"
    else:
        assert choose_datapath("auto") == "netdev"
        with pytest.raises(SwitchUnavailable, match="modprobe openvswitch"):
            choose_datapath("system")


def test_nothing_is_started_where_open_vswitch_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SwitchUnavailable, match="apt-get install openvswitch-switch"):
        PrivateInstance(tmp_path / "run").start()
    assert not (tmp_path / "run").exists()


def test_errors_carry_their_parts() -> None:
    assert str(CommandFailed(["ovs-vsctl", "a b"], "no\n")) == "`ovs-vsctl 'a b'` failed: no"
    assert "left no log" in str(DaemonFailed("ovs-vswitchd", "ended", ""))


def room_of_ports() -> list[dict[str, int]]:
    """Return the receive buffers of the ports' packet sockets, also after a restart; one port is late."""
    for name in ("p1", "p2"):
        subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}x"], check=True)
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    with tempfile.TemporaryDirectory() as folder, PrivateInstance(folder, datapath="netdev") as ovs:
        ovs.add_bridge("s1", datapath_id=1, ports=[Port("p1", 1)])
        ovs.add_ports("s1", [Port("p2", 2)])
        rooms = [port_rooms()]
        ovs.restart_forwarder()
        return [*rooms, port_rooms()]


def port_rooms() -> dict[str, int]:
    told = subprocess.run(["ss", "-0HOnm"], capture_output=True, text=True, check=True).stdout
    return {name: int(size) for name, size in re.findall(r":(p\d) .*\brb(\d+)", told)}


@pytest.mark.root
def test_ports_have_room_for_what_comes_while_the_switch_is_held_up() -> None:
    assert run_in_sandbox(room_of_ports) == [{"p1": 2 * ROOM_BYTES, "p2": 2 * ROOM_BYTES}] * 2
