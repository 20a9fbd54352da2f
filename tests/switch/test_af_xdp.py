"""Ports that Open vSwitch reads by AF_XDP: when they are chosen, that they forward and leave nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from switch import Port, PrivateInstance, af_xdp
from switch.capabilities import probe_af_xdp
from switch.errors import CommandFailed
from tests.sandbox import run_in_sandbox, snapshot

ETHERTYPE = 0x88B5
"""For local experiments (IEEE 802)."""
FRAMES = 500
MIB = 1 << 20


@pytest.fixture
def _af_xdp() -> None:
    probed = probe_af_xdp()
    if not probed.available:
        pytest.skip(probed.detail)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    version = "ovs-vswitchd (Open vSwitch) 3.1.0"
    assert af_xdp.problem(["internal", "tap"], version) == "Open vSwitch was built without AF_XDP"
    old = af_xdp.problem(["afxdp"], "ovs-vswitchd (Open vSwitch) 2.17.9\nDPDK 21")
    assert old is not None
    assert "3.1 or later is needed, this is ovs-vswitchd (Open vSwitch) 2.17.9 DPDK 21" in old

    def refuse(*_: object) -> socket.socket:
        raise OSError(97, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refuse)
    assert af_xdp.problem(["afxdp"], version) == (
        "the kernel opens no AF_XDP socket (Address family not supported by protocol)"
    )


@pytest.mark.parametrize(("available_mib", "ports"), [(0, 0), (227, 0), (228, 1), (24_000, 105)])
def test_ports_take_at_most_a_third_of_the_memory(tmp_path: Path, available_mib: int, ports: int) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {available_mib * 1024} kB\nBuffers: 1 kB\n")
    assert af_xdp.has_memory_for(ports, meminfo)
    assert not af_xdp.has_memory_for(ports + 1, meminfo)
    meminfo.write_text("MemTotal: 99999999 kB\n")
    assert not af_xdp.has_memory_for(1, meminfo)


def make_links() -> dict[str, socket.socket]:
    """Make two links, and return packet sockets at their far ends."""
    ends = {}
    for number in (1, 2):
        subprocess.run(
            ["ip", "link", "add", f"v{number}", "type", "veth", "peer", f"far{number}"], check=True
        )
        for name in (f"v{number}", f"far{number}"):
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        end.bind((f"far{number}", ETHERTYPE))
        end.settimeout(20)
        ends[f"far{number}"] = end
    return ends


def frame(number: int, size_bytes: int) -> bytes:
    return (b"\x02" + bytes(10) + b"\x01" + ETHERTYPE.to_bytes(2, "big") + number.to_bytes(4, "big")).ljust(
        size_bytes, b"\xa5"
    )


def forward() -> dict[str, Any]:
    """Send frames of all sizes both ways through one bridge with AF_XDP ports, then stop at once."""
    before = snapshot()
    ends = make_links()
    with tempfile.TemporaryDirectory() as folder:
        ovs = PrivateInstance(Path(folder) / "ovs", datapath="netdev", ports="auto")
        with ovs:
            ovs.add_bridge("S0", datapath_id=1, ports=[Port("v1", 1), Port("v2", 2)])
            ovs.ofctl("add-flow", "S0", "in_port=1,actions=output:2")
            ovs.ofctl("add-flow", "S0", "in_port=2,actions=output:1")
            arrived: dict[str, list[int]] = {}
            for sender, receiver in (("far1", "far2"), ("far2", "far1")):
                sent = [frame(number, 60 + number * (1514 - 60) // (FRAMES - 1)) for number in range(FRAMES)]
                wrong = 0
                for one in sent:  # one after the other: no queue can be full
                    ends[sender].send(one)
                    wrong += ends[receiver].recv(2000) != one
                arrived[receiver] = [len(sent), wrong]
            threads = {}
            for task in Path(f"/proc/{ovs.forwarder_pid}/task").iterdir():
                threads[(task / "comm").read_text().strip()] = len(os.sched_getaffinity(int(task.name)))
            kind = ovs.port_kind
            ovs.begin_stop()
            ovs.remove_bridge("S0")
        for end in ends.values():
            end.close()
        left = {name for _, name in socket.if_nameindex()}
        for name in ("v1", "v2"):
            subprocess.run(["ip", "link", "del", name], check=True)
        # The same instance once more.
        make_links()
        with ovs:
            ovs.add_bridge("S0", datapath_id=1, ports=[Port("v1", 1)])
            again = ovs.vsctl("list-ports", "S0").split()
        for name in ("v1", "v2"):
            subprocess.run(["ip", "link", "del", name], check=True)
    return {
        "arrived": arrived,
        "kind": kind,
        "threads": threads,
        "left": sorted(left),
        "again": again,
        "same": snapshot() == before,
    }


@pytest.mark.root
@pytest.mark.usefixtures("_af_xdp")
def test_every_frame_is_forwarded_and_nothing_is_left() -> None:
    outcome = run_in_sandbox(forward)
    assert outcome["kind"] == "af_xdp"
    assert outcome["arrived"] == {"far1": [FRAMES, 0], "far2": [FRAMES, 0]}
    forwarding = [cores for name, cores in outcome["threads"].items() if name.startswith("pmd-")]
    assert forwarding == [os.cpu_count()]
    assert outcome["left"] == ["far1", "far2", "lo", "v1", "v2"]
    assert outcome["again"] == ["v1"]
    assert outcome["same"]


def fall_back() -> dict[str, str]:
    """Have every AF_XDP port fail where it was thought to work."""
    make_links()
    said: dict[str, str] = {}
    af_xdp.port_settings = lambda: ["type=afxdp", "options:xdp-mode=native", "options:n_rxq=64"]
    with tempfile.TemporaryDirectory() as folder:
        for asked in ("auto", "af_xdp"):
            with PrivateInstance(Path(folder) / asked, datapath="netdev", ports=asked) as ovs:
                try:
                    ovs.add_bridge("S0", datapath_id=1, ports=[Port("v1", 1), Port("v2", 2)])
                    said[asked] = f"{ovs.port_kind} {' '.join(ovs.vsctl('list-ports', 'S0').split())}"
                except CommandFailed as failure:
                    said[asked] = f"{failure} {ovs.vsctl('list-br')}"
    return said


@pytest.mark.root
@pytest.mark.usefixtures("_af_xdp")
def test_a_machine_that_refuses_such_ports_gets_packet_sockets() -> None:
    said = run_in_sandbox(fall_back)
    assert said["auto"] == "packet v1 v2"
    assert "v1" in said["af_xdp"]
