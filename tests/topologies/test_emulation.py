"""Real networks: Mininet, a private Open vSwitch and real links, each in a sandbox of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import topologies
from experiments.engines.live.machine_drops import MachineDrops
from switch import PrivateInstance, SwitchError
from switch.capabilities import probe_link_qdiscs
from tests.fakes.waiting import wait_until
from tests.paths import ROOT
from tests.sandbox import run_in_sandbox, snapshot
from topologies.errors import LinkNotFaithful
from topologies.interface_names import InterfaceNames
from topologies.model import Network

pytestmark = pytest.mark.root

PING_FRAME_BYTES = 98
"""Ethernet 14, IPv4 20, ICMP 8 and 56 bytes of data."""
FLOW_1 = ("T0", "S0", "S4", "T2")
FLOW_2 = ("T1", "S1", "S2", "S3", "S5", "T3")


@contextlib.contextmanager
def switches() -> Iterator[PrivateInstance]:
    with tempfile.TemporaryDirectory() as folder, PrivateInstance(Path(folder) / "ovs") as ovs:
        yield ovs


def install_path(ovs: PrivateInstance, network: Network, nodes: Sequence[str]) -> None:
    """Forward along a path, in both directions."""
    arcs = {(arc.tail, arc.head): arc for arc in network.arcs()}
    for there in (nodes, nodes[::-1]):
        for before, here, after in zip(there, there[1:], there[2:], strict=False):
            into, out = arcs[before, here].head_port, arcs[here, after].tail_port
            ovs.ofctl("add-flow", here, f"in_port={into},actions=output:{out}")


def least_rtt_s(network: Network, nodes: Sequence[str]) -> float:
    """Return propagation and serialisation of a ping there and back: no measurement can be below it."""
    links = [network.link(f"{a}-{b}") for a, b in itertools.pairwise(nodes)]
    return 2 * sum(link.delay_s + 8 * PING_FRAME_BYTES / link.rate_bps for link in links)


def ping_s(emulation: Any, source: str, destination: str, count: int = 10) -> list[float]:
    argv = ["ping", "-n", "-c", str(count), "-i", "0.05", "-W", "2", emulation.host_ip(destination)]
    done = emulation.run(source, argv)
    return [float(ms) / 1e3 for ms in re.findall(r"time=([\d.]+) ms", done.stdout)]


def build_line() -> dict[str, Any]:
    from topologies.mininet_builder import Emulation

    network = topologies.load("line:2:delay_us=3000")
    with switches() as ovs:
        before = snapshot()
        with Emulation(network, ovs=ovs, mtu=576) as emulation:
            install_path(ovs, network, ("h1", "s1", "s2", "h2"))
            rtts = ping_s(emulation, "h1", "h2")
            management = emulation.run("h1", ["ping", "-n", "-c", "1", "-W", "2", emulation.controller_ip])
            addresses = emulation.run("h1", ["ip", "-o", "address"]).stdout
            link = emulation.run("h1", ["ip", "link", "show", "h1-eth0"]).stdout
            offloads = emulation.run("h1", ["ethtool", "-k", "h1-eth0"]).stdout
            emulation.popen("h1", ["sleep", "1000"])
            counters = emulation.link_counters()
            described = emulation.qdiscs()
        after = snapshot()
    return {
        "least_rtt_s": least_rtt_s(network, ("h1", "s1", "s2", "h2")),
        "rtts": rtts,
        "management": management.returncode,
        "addresses": addresses,
        "link": link,
        "offloads": offloads,
        "carried": {f"{c.tail}->{c.head}": c.packets for c in counters},
        "wrong": sum(c.dropped + c.dropped_by_machine for c in counters),
        "described": described,
        "before": before,
        "after": after,
    }


def test_line_carries_packets_no_faster_than_its_links_and_leaves_nothing() -> None:
    outcome = run_in_sandbox(build_line)
    assert len(outcome["rtts"]) == 10
    assert min(outcome["rtts"]) >= outcome["least_rtt_s"]
    assert outcome["management"] == 0
    assert "10.0.0.1/16" in outcome["addresses"]
    assert "10.255.0.2/16" in outcome["addresses"]
    assert "inet6" not in outcome["addresses"]
    assert "mtu 576" in outcome["link"]
    assert "link/ether 02:00:0a:00:00:01" in outcome["link"]
    assert "tx-checksumming: off" in outcome["offloads"]
    # Ten pings, ARP, and nothing else that would disturb a measurement.
    assert 11 <= outcome["carried"]["s1->s2"] <= 16
    assert outcome["wrong"] == 0
    assert len(outcome["described"]) == 6
    assert outcome["after"] == outcome["before"]


RECEIVE = """
import socket
server = socket.create_server(("", 5000))
connection = server.accept()[0]
received = 0
while data := connection.recv(65536):
    received += len(data)
print(received)
"""
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], 5000)) as connection:
    connection.sendall(bytes(200_000))
"""


def build_butterfly() -> dict[str, Any]:
    from topologies.mininet_builder import Emulation

    network = topologies.load("butterfly", "b")
    with switches() as ovs:
        before = snapshot()
        with Emulation(network, ovs=ovs, mtu=576) as emulation:
            ports = {name: ovs.ofctl("show", name) for name in network.switches}
            for nodes in (FLOW_1, FLOW_2):
                install_path(ovs, network, nodes)
            drops = MachineDrops(network, InterfaceNames(network))
            rtts = {nodes[0]: ping_s(emulation, nodes[0], nodes[-1]) for nodes in (FLOW_1, FLOW_2)}
            lost = dict(drops.since_start())
            for each in emulation.link_counters():
                lost[f"from {each.tail} to {each.head}"] = each.dropped + each.dropped_by_machine
            server = emulation.popen("T2", [sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True)
            listening = ["sh", "-c", "ss -Hltn 'sport = 5000' | grep -q ."]
            wait_until(lambda: emulation.run("T2", listening).returncode == 0, "listening")
            emulation.run("T0", [sys.executable, "-c", SEND, emulation.host_ip("T2")])
            transferred = server.communicate(timeout=20)[0]
        after = snapshot()
    return {
        "ports": ports,
        "rtts": rtts,
        "lost": {place: packets for place, packets in lost.items() if packets},
        "least": {nodes[0]: least_rtt_s(network, nodes) for nodes in (FLOW_1, FLOW_2)},
        "transferred": int(transferred),
        "before": before,
        "after": after,
    }


def test_butterfly_has_the_numbers_of_the_model_and_carries_tcp() -> None:
    outcome = run_in_sandbox(build_butterfly)
    network = topologies.load("butterfly", "b")
    for arc in network.arcs():
        if arc.tail in network.switches:
            shown = outcome["ports"][arc.tail]
            assert f"dpid:{network.datapath_id(arc.tail):016x}" in shown
            assert re.search(rf"^ {arc.tail_port}\({arc.tail}-eth{arc.tail_port}\)", shown, re.MULTILINE)
    for source, least in outcome["least"].items():
        # A machine that is far too slow may lose a packet, and then says where.
        assert len(outcome["rtts"][source]) + sum(outcome["lost"].values()) >= 10, outcome["lost"]
        assert min(outcome["rtts"][source]) >= least
    assert outcome["transferred"] == 200_000
    assert outcome["after"] == outcome["before"]


def change_links() -> dict[str, Any]:
    from topologies.mininet_builder import Emulation

    network = topologies.load("line:2")
    with switches() as ovs, Emulation(network, ovs=ovs) as emulation:
        install_path(ovs, network, ("h1", "s1", "s2", "h2"))

        def port_state() -> str:
            match = re.search(
                r"^ 2\(s1-eth2\).*?state:\s+(\w+)", ovs.ofctl("show", "s1"), re.MULTILINE | re.DOTALL
            )
            assert match is not None
            return match[1]

        outcome: dict[str, Any] = {"before": min(ping_s(emulation, "h1", "h2"))}
        emulation.set_link("s2-s1", delay_us=20_000, rate_bps=1e6)
        outcome["slow"] = min(ping_s(emulation, "h1", "h2"))
        outcome["least_slow"] = least_rtt_s(emulation.network, ("h1", "s1", "s2", "h2"))
        emulation.set_link("s1-s2", up=False)
        wait_until(lambda: port_state() == "LINK_DOWN", "the carrier's loss")
        outcome["cut"] = ping_s(emulation, "h1", "h2", 2)
        emulation.set_link("s1-s2", up=True)
        wait_until(lambda: port_state() == "LIVE", "the carrier's return")
        outcome["restored"] = ping_s(emulation, "h1", "h2", 2)
        emulation.set_link("s1-s2", up=False, silent=True)
        outcome["silent"] = ping_s(emulation, "h1", "h2", 2)
        outcome["silent_state"] = port_state()
        emulation.set_link("s1-s2", up=True)
        outcome["back"] = ping_s(emulation, "h1", "h2", 2)
        try:
            emulation.set_link("s1-s2", rate_bps=0)
        except topologies.TopologyError as error:
            outcome["refused"] = str(error)
        outcome["still"] = ping_s(emulation, "h1", "h2", 2)
    return outcome


def test_links_change_while_packets_flow() -> None:
    outcome = run_in_sandbox(change_links)
    assert outcome["before"] < 0.02
    assert outcome["slow"] >= outcome["least_slow"] > 0.04
    assert outcome["cut"] == outcome["silent"] == []
    assert len(outcome["restored"]) == len(outcome["back"]) == len(outcome["still"]) == 2
    assert outcome["silent_state"] == "LIVE"
    assert "links.s1-s2.rate_bps" in outcome["refused"]


def fail_to_build(clash: str) -> dict[str, Any]:
    from topologies.mininet_builder import Emulation

    network = topologies.load("line:2")
    with switches() as ovs:
        start = snapshot()
        if clash == "bridge":
            ovs.add_bridge("s2", datapath_id=99)
        else:
            subprocess.run(["ip", "link", "add", clash, "type", "bridge"], check=True)
        before = snapshot()
        try:
            Emulation(network, ovs=ovs).start()
        except (topologies.TopologyError, SwitchError) as error:
            failure = f"{type(error).__name__}: {error}"
        after = snapshot()
        bridges = ovs.vsctl("list-br").split()
        if clash == "bridge":
            ovs.remove_bridge("s2")
        else:
            subprocess.run(["ip", "link", "del", clash], check=True)
        with Emulation(network, ovs=ovs):
            pass
        end = snapshot()
    return {
        "failure": failure,
        "before": before,
        "after": after,
        "bridges": bridges,
        "start": start,
        "end": end,
    }


@pytest.mark.parametrize("clash", ["s1-eth1", "wire2b", "mgmt", "h2-m", "s2", "bridge"])
def test_failed_build_leaves_what_was_there_and_nothing_else(clash: str) -> None:
    outcome = run_in_sandbox(fail_to_build, clash)
    assert outcome["failure"].startswith("CommandFailed: ")
    assert ("s2" if clash == "bridge" else clash) in outcome["failure"]
    assert outcome["after"] == outcome["before"]
    assert outcome["bridges"] == (["s2"] if clash == "bridge" else [])
    assert outcome["end"] == outcome["start"]


def refuse_netem() -> list[Any]:
    from topologies.mininet_builder import Emulation

    with switches() as ovs:
        before = snapshot()
        try:
            Emulation(topologies.load("line:2"), ovs=ovs, link_backend="netem").start()
        except LinkNotFaithful as error:
            return [str(error), snapshot() == before]
    return ["built", True]


def test_links_that_the_kernel_cannot_make_are_refused() -> None:
    if all(qdisc.available for qdisc in probe_link_qdiscs()):
        pytest.skip("needs a kernel without netem")
    text, is_clean = run_in_sandbox(refuse_netem)
    assert "netem" in text
    assert "modprobe sch_netem" in text
    assert is_clean


def build_with_netem() -> dict[str, Any]:
    from topologies.mininet_builder import Emulation

    network = topologies.load("line:2:delay_us=3000:queue_packets=50")
    with switches() as ovs, Emulation(network, ovs=ovs, link_backend="netem") as emulation:
        install_path(ovs, network, ("h1", "s1", "s2", "h2"))
        rtts = ping_s(emulation, "h1", "h2")
        counters = {f"{c.tail}->{c.head}": c.packets for c in emulation.link_counters()}
    return {"rtts": rtts, "least": least_rtt_s(network, ("h1", "s1", "s2", "h2")), "counters": counters}


def test_links_of_netem() -> None:
    if not all(qdisc.available for qdisc in probe_link_qdiscs()):
        pytest.skip("needs sch_netem and sch_tbf")
    outcome = run_in_sandbox(build_with_netem)
    assert len(outcome["rtts"]) == 10
    assert min(outcome["rtts"]) >= outcome["least"]
    assert outcome["counters"]["s1->s2"] >= 10


def set_up_and_tear_down(count: int) -> dict[str, Any]:
    from topologies.mininet_builder import Emulation

    network = topologies.load("butterfly")
    with switches() as ovs:
        before = snapshot()
        for _ in range(count):
            with Emulation(network, ovs=ovs):
                pass
        return {"before": before, "after": snapshot(), "bridges": ovs.vsctl("list-br").split()}


def test_repeated_set_up_leaves_nothing() -> None:
    outcome = run_in_sandbox(set_up_and_tear_down, 5)
    assert outcome["after"] == outcome["before"]
    assert outcome["bridges"] == []


def run_mn() -> dict[str, Any]:
    with switches() as ovs, tempfile.TemporaryDirectory() as folder:
        before = snapshot()
        script = Path(folder) / "commands"
        commands = [f"sh ovs-ofctl add-flow {switch} actions=normal" for switch in ("s1", "s2")]
        script.write_text("\n".join([*commands, "h1 ping -n -c 3 h2", "links"]) + "\n")
        command = ["mn", "--custom", "topologies/mn.py", "--topo", "line,2,delay_us=5000"]
        command += ["--controller", "none", "--post", str(script), "--test", "none"]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **ovs.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return {"output": done.stdout + done.stderr, "before": before, "after": snapshot()}


def test_mininets_own_command_line_runs_our_networks() -> None:
    outcome = run_in_sandbox(run_mn)
    rtts = [float(ms) for ms in re.findall(r"time=([\d.]+) ms", outcome["output"])]
    assert len(rtts) == 3, outcome["output"]
    assert min(rtts) >= 10.4
    assert "s1-eth2<->s2-eth2 (OK OK)" in outcome["output"]
    assert outcome["after"] == outcome["before"]


def run_mn_without_switches() -> tuple[int, str]:
    command = ["mn", "--custom", "topologies/mn.py", "--topo", "butterfly", "--test", "none"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OVS_RUNDIR": folder}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    return done.returncode, done.stdout + done.stderr


def test_mininets_own_command_line_says_that_it_has_no_switches() -> None:
    status, output = run_in_sandbox(run_mn_without_switches)
    assert status != 0
    assert "mn has no switches: ovsdb-server does not answer" in output
    assert "openvswitch-switch" in output
    assert "Traceback" not in output
