"""The splitter at real interfaces and before Open vSwitch, each time in a sandbox of its own."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from switch import PrivateInstance, SwitchError
from switch.bpf import libbpf
from switch.errors import BpfFailed
from switch.ppfs import MAX_FLOWS, FlowKey, Splitter, gro
from switch.ppfs.split import COUNTERS_BYTES
from tests.fakes.split_network import (
    DESTINATION_MAC,
    SOURCE_MAC,
    Split,
    run,
    send,
    sigmas,
    stamps,
    udp_frame,
)
from tests.fakes.waiting import wait_until
from tests.sandbox import run_in_sandbox, snapshot

Mode = Literal["auto", "native", "generic"]
SHARES = ([0.5, 0.5], [0.85, 0.15], [0.2, 0.3, 0.5], [0.05, 0.08, 0.1, 0.12, 0.13, 0.15, 0.17, 0.2])
TCP = FlowKey("10.0.0.1", "10.0.0.2", 40000, 5001)
UDP = FlowKey("10.0.0.1", "10.0.0.2", 40000, 5001, 17)
# Its destination has the bytes of its ports: a header cut by four bytes would have them where the ports are.
CUT = FlowKey("10.0.0.1", "156.64.19.137", 40000, 5001, 17)
UDP6 = FlowKey("fd00::1", "fd00::2", 40000, 5001, 17)
WINDOW = 100
ALL_TO_THE_FIRST = ([1.0, 0.0], ["0a:50:50:00:01:00", "0a:50:50:00:01:01"])
HOLD = """
import sys, time
from switch.ppfs import Splitter
with Splitter("v0", sys.argv[1]) as splitter:
    print(splitter.mode, flush=True)
    time.sleep(60)
"""
SEND = """
import hashlib, socket, sys
data = bytes(range(251)) * (int(sys.argv[1]) // 251)
with socket.create_connection(("10.0.0.2", 5001), 20, ("10.0.0.1", 40000)) as peer:
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
    print(peer.recv(64).hex())
"""
RECEIVE = """
import hashlib, socket
with socket.create_server(("10.0.0.2", 5001)) as server:
    print("ready", flush=True)
    peer = server.accept()[0]
    received = hashlib.sha256()
    while data := peer.recv(65536):
        received.update(data)
    peer.sendall(received.digest())
"""


def veth() -> None:
    run("ip link add v0 type veth peer name v1")
    for end in ("v0", "v1"):
        run(f"ip link set {end} addrgenmode none up")


def programs(interface: str) -> list[int]:
    shown = json.loads(run(f"ip -j -d link show dev {interface}"))[0].get("xdp", {})
    return (
        [shown["prog"]["id"]] if "prog" in shown else [one["prog"]["id"] for one in shown.get("attached", [])]
    )


def complaint_of(attempt: Callable[[], object]) -> str:
    try:
        return str(attempt())
    except (SwitchError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def crafted() -> dict[str, bytes]:
    """Frames of the split flow as they are and with one thing changed."""
    udp, tcp = udp_frame(UDP, 60), bytearray(udp_frame(UDP, 60))
    tcp[23] = socket.IPPROTO_TCP
    ethernet, ip, rest = udp[:14], udp[14:34], udp[34:]

    def with_ip(at: int, value: bytes) -> bytes:
        return ethernet + ip[:at] + value + ip[at + len(value) :] + rest

    options = bytes([0x4F]) + ip[1:] + bytes(40)
    return {
        "split: UDP": udp,
        "split: TCP": bytes(tcp),
        "split: IP options": ethernet + options + rest,
        "split: do not fragment": with_ip(6, b"\x40\x00"),
        "split: longest": udp_frame(UDP, 1514),
        "split: shortest": udp[:42],
        "split: IPv6": udp_frame(UDP6, 80),
        "pass: another source of IPv6": udp_frame(replace(UDP6, source_ip="fd00::9"), 80),
        "pass: IPv6 with a header between": udp_frame(UDP6, 80)[:20] + b"\x3c" + udp_frame(UDP6, 80)[21:],
        "pass: ends in the ports of IPv6": udp_frame(UDP6, 80)[:61],
        "pass: first fragment": with_ip(6, b"\x20\x00"),
        "pass: later fragment": with_ip(6, b"\x00\x10"),
        "pass: ICMP": with_ip(9, b"\x01"),
        "pass: another source": with_ip(12, b"\x0a\x00\x00\x09"),
        "pass: another destination": with_ip(16, b"\x0a\x00\x00\x09"),
        "pass: another source port": ethernet + ip + b"\x00\x01" + rest[2:],
        "pass: another destination port": ethernet + ip + rest[:2] + b"\x00\x01" + rest[4:],
        "pass: the other direction": ethernet + ip[:12] + ip[16:20] + ip[12:16] + rest,
        "pass: IPv6's type": ethernet[:12] + b"\x86\xdd" + ip + rest,
        "pass: IP version 6": with_ip(0, b"\x65"),
        "pass: header of 16 bytes": ethernet + b"\x44" + udp_frame(CUT, 60)[15:],
        "pass: tagged": ethernet[:12] + b"\x81\x00\x00\x05" + ethernet[12:] + ip + rest,
        "pass: ARP": ethernet[:12] + b"\x08\x06" + bytes(28),
        "pass: ends in the ports": udp[:41],
        "pass: ends in the IP header": udp[:33],
        "pass: ends in the options": ethernet + options[:-1],
        "pass: Ethernet header alone": ethernet,
    }


def exchange_frames(mode: Mode) -> dict[str, Any]:
    veth()
    came: dict[str, str | None] = {}
    with Splitter("v0", mode) as splitter:
        for flow in (UDP, TCP, CUT, UDP6):
            splitter.set(flow, *ALL_TO_THE_FIRST)
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        receiver.bind(("v0", 0))
        receiver.settimeout(5)
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sender.bind(("v1", 0))
        with sender, receiver:
            for name, frame in crafted().items():
                sender.send(frame)
                came[name] = receiver.recv(2048).hex()
        counted = {str(flow): splitter.counters(flow) for flow in splitter.flows}
        return {"came": came, "mode": splitter.mode, "counted": counted}


@pytest.mark.root
@pytest.mark.parametrize("mode", ["native", "generic"])
def test_packets_of_the_flow_are_stamped_and_no_others(mode: Mode) -> None:
    outcome = run_in_sandbox(exchange_frames, mode)
    assert outcome["mode"] == mode
    others = ("split: TCP", "split: IPv6")
    split_udp = [frame for name, frame in crafted().items() if name[:5] == "split" and name not in others]
    for name, frame in crafted().items():
        # A tag is taken off the frame before a packet socket has it.
        if name == "pass: tagged":
            continue
        stamped = frame[:6] + bytes.fromhex("0a5050000100") + frame[12:]
        assert outcome["came"][name] == (stamped if name.startswith("split") else frame).hex(), name
    assert outcome["came"]["pass: tagged"][12:24] == SOURCE_MAC.replace(":", "")
    assert outcome["counted"] == {
        str(UDP): [[len(split_udp), sum(map(len, split_udp))], [0, 0]],
        str(TCP): [[1, 60], [0, 0]],
        str(CUT): [[0, 0], [0, 0]],
        str(UDP6): [[1, 80], [0, 0]],
    }


def split_before_ovs(shares: list[float], count: int, mode: Mode) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        network = Split(stack.enter_context(PrivateInstance(folder, datapath="netdev")), len(shares))
        splitter = stack.enter_context(Splitter("in", mode))
        splitter.set(UDP, shares, stamps(len(shares)))
        # As fast as they arrive: no machine is too slow, and a lost packet is one that never comes.
        for sent in range(0, count, WINDOW):
            send("h1", [udp_frame(UDP)], WINDOW, 1e6)
            wait_until(lambda: network.arrived() >= sent + WINDOW, "the arrival of every packet")  # noqa: B023
        return {
            "arrived": network.arrived(),
            "over_paths": network.over_paths(),
            "counted": [packets for packets, _ in splitter.counters(UDP)],
            "megaflows": network.megaflows(),
        }


@pytest.mark.root
@pytest.mark.parametrize(
    ("shares", "mode"),
    [(shares, "native") for shares in SHARES] + [(SHARES[2], "generic")],
)
def test_realised_split_is_the_one_asked_for(shares: list[float], mode: Mode) -> None:
    outcome = run_in_sandbox(split_before_ovs, shares, 20_000, mode)
    assert outcome["arrived"] == sum(outcome["counted"]) == 20_000
    # The stamp is the path: no packet took another than the one that was drawn.
    assert outcome["over_paths"] == outcome["counted"]
    # By chance it is further away in one of 10,000 runs.
    assert sigmas(outcome["counted"], shares) < 4.5
    assert outcome["megaflows"] <= 20


def send_until(done: threading.Event, sent: list[int]) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("v1", 0))
        while not done.is_set():
            sender.send(udp_frame(UDP))
            sent[0] += 1


def read_until(done: threading.Event, receiver: socket.socket, seen: Counter[str]) -> None:
    while not done.is_set():
        with contextlib.suppress(TimeoutError):
            seen[receiver.recv(2048)[6:12].hex(":")] += 1


def change_while_packets_flow() -> dict[str, Any]:
    veth()
    one = ([1.0, 0.0], ["0a:50:50:00:00:00", "0a:50:50:00:00:01"])
    other = ([0.0, 1.0], ["0a:50:50:00:01:00", "0a:50:50:00:01:01"])
    done, sent, seen = threading.Event(), [0], Counter[str]()
    with contextlib.ExitStack() as stack:
        splitter = stack.enter_context(Splitter("v0"))
        splitter.set(UDP, *one)
        receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        stack.enter_context(receiver)
        receiver.bind(("v0", 0))
        receiver.settimeout(0.1)
        for thread in (
            threading.Thread(target=send_until, args=(done, sent)),
            threading.Thread(target=read_until, args=(done, receiver, seen)),
        ):
            thread.start()
            stack.callback(thread.join)
            stack.callback(done.set)
        for _ in range(50):
            for split in (other, one):
                splitter.set(UDP, *split)
        # When `set` has returned, no packet sees the old split.
        before = splitter.counters(UDP)
        wait_until(lambda: splitter.counters(UDP)[0][0] > before[0][0] + 100, "traffic")
        after = splitter.counters(UDP)
        done.set()
        wait_until(lambda: sum(count for count, _ in splitter.counters(UDP)) == sent[0], "the last packet")
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return {"seen": seen, "before": before, "after": after, "descriptors": descriptors}


@pytest.mark.root
def test_change_is_whole_for_every_packet_and_keeps_the_counters() -> None:
    outcome = run_in_sandbox(change_while_packets_flow)
    # Half of one split and half of the other would be the other two stamps.
    assert set(outcome["seen"]) == {"0a:50:50:00:00:00", "0a:50:50:00:01:01"}
    assert min(outcome["seen"].values()) > 100
    assert outcome["before"][1][0] > 100
    assert outcome["after"][1] == outcome["before"][1]
    assert outcome["descriptors"] < 30


def use_and_leave() -> dict[str, Any]:
    veth()
    before = snapshot()
    splitter = Splitter("v0")
    during = programs("v0")
    splitter.set(UDP, *ALL_TO_THE_FIRST)
    splitter.set(UDP, [1.0], stamps(1))
    longest = len(splitter.counters(UDP))
    splitter.remove(UDP)
    splitter.remove(UDP)
    said = {
        "removed": complaint_of(lambda: splitter.counters(UDP)),
        "again": complaint_of(lambda: splitter.set(UDP, [0.5], stamps(1))),
        "flows": str(splitter.flows),
    }
    splitter.set(UDP, [1.0], stamps(1))
    counted = splitter.counters(UDP)
    splitter.close()
    splitter.close()
    said["closed"] = complaint_of(lambda: splitter.set(UDP, [1.0], stamps(1)))
    return {
        "said": said,
        "longest": longest,
        "counted": counted,
        "during": during,
        "left": programs("v0"),
        "before": before,
        "after": snapshot(),
    }


@pytest.mark.root
def test_closing_leaves_nothing() -> None:
    outcome = run_in_sandbox(use_and_leave)
    assert len(outcome["during"]) == 1
    assert outcome["left"] == []
    assert outcome["after"] == outcome["before"]
    assert outcome["longest"] == 2
    assert outcome["counted"] == [[0, 0]]
    assert outcome["said"] == {
        "removed": f"InvalidSplit: flow: {UDP} is not split at v0",
        "again": "InvalidSplit: shares: their sum is 0.5, not 1",
        "flows": "()",
        "closed": "ValueError: the splitter at v0 is closed",
    }


def kill_holder(mode: Mode) -> dict[str, Any]:
    veth()
    holder = subprocess.Popen([sys.executable, "-c", HOLD, mode], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder.stdout:
        said = holder.stdout.readline().strip()
        during = len(programs("v0"))
        refused = complaint_of(lambda: Splitter("v0"))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    # The kernel lets go of a dead process's descriptors after its parent has heard of the death.
    wait_until(lambda: not programs("v0"), "the detachment")
    with Splitter("v0") as splitter:
        return {"said": said, "during": during, "refused": refused, "after": splitter.mode}


@pytest.mark.root
@pytest.mark.parametrize("mode", ["native", "generic"])
def test_program_goes_with_a_killed_process(mode: Mode) -> None:
    outcome = run_in_sandbox(kill_holder, mode)
    assert outcome["said"] == mode
    assert outcome["during"] == 1
    assert outcome["refused"].startswith("BpfFailed: attaching the splitter to v0 in ")
    assert "another XDP program is there" in outcome["refused"]
    assert outcome["after"] == "native"


def attempt_the_impossible() -> dict[str, Any]:
    veth()
    # Too long for native mode, which wants a packet in one page.
    run("ip link set v1 mtu 9000")
    run("ip link set v0 mtu 9000")
    said = {
        "interface": complaint_of(lambda: Splitter("nowhere")),
        "native": complaint_of(lambda: Splitter("v0", "native")),
        "mode": complaint_of(lambda: Splitter("v0", "fast")),  # type: ignore[arg-type]
    }
    with Splitter("v0") as splitter:
        said["auto"] = splitter.mode
        for number in range(MAX_FLOWS):
            libbpf.update(
                splitter._counters, struct.pack("=QQ", number, 1), bytes(COUNTERS_BYTES * libbpf.cpu_count())
            )
        said["full"] = complaint_of(lambda: splitter.set(UDP, *ALL_TO_THE_FIRST))
        said["flows"] = str(splitter.flows)
    said["left"] = str(programs("v0"))
    # Without capabilities, but still the user who can read the checkout.
    unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c"]
    attempt = "from switch.ppfs import *\ntry: Splitter('v0')\nexcept BpfUnavailable as e: print(e)"
    done = subprocess.run([*unprivileged, attempt], check=False, capture_output=True, text=True)
    said["unprivileged"] = done.stdout.strip() or done.stderr
    return said


@pytest.mark.root
def test_failures_say_what_is_wrong() -> None:
    said = run_in_sandbox(attempt_the_impossible)
    assert said["interface"].startswith("BpfFailed: finding the interface nowhere failed (No such device)")
    assert said["native"].startswith("BpfFailed: attaching the splitter to v0 in native mode failed (")
    assert said["native"].endswith("try mode generic")
    assert said["mode"] == "ValueError: mode is auto, native or generic, not 'fast'"
    assert said["auto"] == "generic"
    assert said["full"].endswith("1024 flows are split at v0, remove one")
    assert said["flows"] == "()"
    assert said["left"] == "[]"
    assert said["unprivileged"] == "this user may not load BPF programs: run it with sudo"


def load_without_btf() -> dict[str, Any]:
    veth()
    if Path("/sys/kernel/btf").is_dir():
        run("mount -t tmpfs none /sys/kernel/btf")
    with Splitter("v0") as splitter:
        splitter.set(UDP, *ALL_TO_THE_FIRST)
        return {"btf": Path("/sys/kernel/btf/vmlinux").exists(), "programs": len(programs("v0"))}


@pytest.mark.root
def test_kernel_needs_no_btf() -> None:
    assert run_in_sandbox(load_without_btf) == {"btf": False, "programs": 1}


def switch_gro() -> list[bool]:
    veth()
    states = [gro.is_on("v0")]
    run("ethtool -K v0 gro on")
    states.append(gro.is_on("v0"))
    gro.switch_off("v0")
    states.append(gro.is_on("v0"))
    with Splitter("v0", "native"):
        states.append(gro.is_on("v0"))
    with pytest.raises(BpfFailed) as caught:
        gro.switch_off("nowhere")
    assert caught.value.number == errno.ENODEV
    return states


@pytest.mark.root
def test_native_mode_leaves_receive_offload_off() -> None:
    assert run_in_sandbox(switch_gro) == [False, True, False, False]


def transfer(mode: Mode, size: int) -> dict[str, Any]:
    run("mount -t tmpfs none /run")
    with tempfile.TemporaryDirectory() as folder, PrivateInstance(folder, datapath="netdev") as ovs:
        network = Split(ovs, 2)
        ends = (("h1", "10.0.0.1", SOURCE_MAC), ("h2", "10.0.0.2", DESTINATION_MAC))
        for (host, address, mac), (_, other, other_mac) in zip(ends, reversed(ends), strict=True):
            run(f"ip netns add {host}")
            run(f"ip link set {host} netns {host}")
            run(f"ip -n {host} link set {host} address {mac} mtu 576 up")
            run(f"ip -n {host} addr add {address}/24 dev {host}")
            run(f"ip -n {host} neigh add {other} lladdr {other_mac} dev {host}")
            run(f"ip netns exec {host} ethtool -K {host} tx off")
        with Splitter("in", mode) as splitter:
            splitter.set(TCP, [0.7, 0.3], stamps(2))
            receiver = subprocess.Popen(
                ["ip", "netns", "exec", "h2", sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE
            )
            assert receiver.stdout is not None
            with receiver.stdout:
                receiver.stdout.readline()
                sender = ["ip", "netns", "exec", "h1", sys.executable, "-c", SEND, str(size)]
                digest = subprocess.run(sender, check=True, capture_output=True, text=True).stdout.strip()
                receiver.wait()
            time.sleep(0.2)
            counted = [packets for packets, _ in splitter.counters(TCP)]
        ovs.remove_bridge("S0", "S1")
        return {
            "digest": digest,
            "counted": counted,
            "over_paths": network.over_paths(),
            "mode": splitter.mode,
        }


@pytest.mark.root
@pytest.mark.parametrize("mode", ["native", "generic"])
def test_tcp_arrives_whole_over_both_paths(mode: Mode) -> None:
    size = 251 * 8_000
    outcome = run_in_sandbox(transfer, mode, size)
    assert outcome["mode"] == mode
    assert outcome["digest"] == hashlib.sha256(bytes(range(251)) * 8_000).hexdigest()
    # A sender without a limit overruns the switch now and then, after the splitter has counted.
    assert all(0 < over <= of for over, of in zip(outcome["over_paths"], outcome["counted"], strict=True))
    # 4 standard deviations of some 3,800 segments.
    assert abs(outcome["counted"][0] / sum(outcome["counted"]) - 0.7) < 0.03


def test_missing_interface_is_named_to_any_user() -> None:
    with pytest.raises(BpfFailed, match="finding the interface no-such0") as caught:
        Splitter("no-such0")
    assert caught.value.number == errno.ENODEV
    assert os.strerror(errno.ENODEV) in str(caught.value)
