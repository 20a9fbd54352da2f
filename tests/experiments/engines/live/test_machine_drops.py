"""Packets that the machine lost: counted where they were, and marked as a fault of the run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import topologies
from experiments.engines.live.machine_drops import MachineDrops, parse_devices, parse_packet_sockets
from switch import Port, PrivateInstance
from switch.capabilities import probe_af_xdp
from tests.fakes.waiting import wait_until
from tests.sandbox import run_in_sandbox
from topologies.interface_names import InterfaceNames

SOCKETS = """\
p_raw 0      0      *:s1-eth1 * skmem:(r0,rb212992,t0,bl0,d{first})
p_raw UNCONN 0 0    *:s1-eth2 * users:(("ovs-vswitchd",pid=7,fd=9)) skmem:(r0,rb212992,t0,bl0,d3)
p_dgr 0      0      ip:s1-eth1 * skmem:(r0,rb212992,t0,bl0,d1)
p_raw 0      0      *:* * skmem:(r0,rb212992,t0,bl0,d0)
"""
DEVICES = """\
Inter-|   Receive                                                |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier
    lo: 1 1 0 99 0 0 0 0 1 1 0 99 0 0 0 0
s1-eth1: 1 1 0 50 0 0 0 0 1 1 0 {port} 0 0 0 0
 wire0a: 1 1 0 {relay} 0 0 0 0 1 1 0 2 0 0 0 0
 wire0b: 1 1 0 60 0 0 0 0 1 1 0 0 0 0 0 0
"""


def test_counters_are_read_from_text() -> None:
    drops = parse_packet_sockets(SOCKETS.format(first=5))
    assert drops == {"s1-eth1": 6, "s1-eth2": 3, "*": 0}
    devices = parse_devices(DEVICES.format(port=7, relay=8))
    assert devices == {"lo": (99, 99), "s1-eth1": (50, 7), "wire0a": (8, 2), "wire0b": (60, 0)}


def test_only_what_was_lost_since_the_start_counts_and_where() -> None:
    network = topologies.load("line:2")
    assert network.links[0].ends == ("h1", "s1")
    sockets = iter([SOCKETS.format(first=5), SOCKETS.format(first=9)])
    devices = iter([DEVICES.format(port=7, relay=8), DEVICES.format(port=8, relay=10)])
    drops = MachineDrops(
        network, InterfaceNames(network), sockets=lambda: next(sockets), devices=lambda: next(devices)
    )
    assert drops.since_start() == {"at port 1 of s1": 5, "on link h1-s1 beside h1": 2}


def overrun(packets: int) -> dict[str, int]:
    """Send more packets to a port than its reader, which never reads, has room for."""
    network = topologies.load("line:2")
    names = InterfaceNames(network)
    port, (_, relay) = names.port("s1", 1), names.wire(0)
    for command in (
        f"link add {port} type veth peer name {relay}",
        f"link set {port} up",
        f"link set {relay} up",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as reader,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
    ):
        reader.bind((port, 3))
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        sender.bind((relay, 0))
        drops = MachineDrops(network, names)
        for _ in range(packets):
            sender.send(b"\xff" * 12 + b"\x88\xb5" + bytes(1000))
        return drops.since_start()


@pytest.mark.root
def test_a_socket_that_is_read_too_late_is_found() -> None:
    lost = run_in_sandbox(overrun, 200)
    assert list(lost) == ["at port 1 of s1"]
    # A few fit, and the kernel sends some of its own (IPv6 discovery).
    assert 190 <= lost["at port 1 of s1"] < 210


def all_stopped(pid: int) -> bool:
    """Return whether no thread of a process runs."""
    try:
        stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread that was listed has ended
    return {stat.rpartition(") ")[2][0] for stat in stats} == {"T"}


def overrun_ring(packets: int) -> dict[str, int]:
    """Send more packets to an AF_XDP port of a stopped Open vSwitch than its ring has room for."""
    network = topologies.load("line:2")
    names = InterfaceNames(network)
    port, (_, relay) = names.port("s1", 1), names.wire(0)
    subprocess.run(["ip", "link", "add", port, "type", "veth", "peer", "name", relay], check=True)
    for name in (port, relay):
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        PrivateInstance(folder, datapath="netdev", ports="af_xdp") as ovs,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
    ):
        ovs.add_bridge("S0", datapath_id=1, ports=[Port(port, 1)])
        sender.bind((relay, 0))
        drops = MachineDrops(network, names, has_af_xdp=True)
        assert ovs.forwarder_pid is not None
        forwarder = ovs.forwarder_pid
        os.kill(forwarder, signal.SIGSTOP)
        try:
            # One thread takes the signal, and on a busy machine the others go on reading until it has.
            wait_until(lambda: all_stopped(forwarder), "all of Open vSwitch's threads stand still")
            for _ in range(packets):
                sender.send(b"\xff" * 12 + b"\x88\xb5" + bytes(1000))
        finally:
            os.kill(forwarder, signal.SIGCONT)
        return drops.since_start()


@pytest.mark.root
def test_a_ring_that_is_read_too_late_is_found() -> None:
    af_xdp = probe_af_xdp()
    if not af_xdp.available:
        pytest.skip(af_xdp.detail)
    lost = run_in_sandbox(overrun_ring, 5000)
    assert list(lost) == ["at port 1 of s1"]
    # The ring has room for 2,048 frames, and the kernel sends some of its own.
    assert 2900 <= lost["at port 1 of s1"] < 3000
