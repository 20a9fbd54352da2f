"""Our congestion controls in kernels: registered by BPF with the running one, built into the virtual one."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from experiments.model.settings import COUPLED_CONTROLS, KERNEL_RESPONSES, RESPONSES
from switch import tcp
from switch.errors import BpfUnavailable
from switch.tcp import Controls, given_name
from switch.tcp.controls import OBJECT, _placeholder
from tests.fakes.waiting import wait_until
from tests.sandbox import run_in_sandbox
from tests.virtual_kernel import run_in_virtual_kernel
from topologies.commands import in_namespace, ip, run, within
from topologies.link_emulator import LinkEmulator, find_binary
from topologies.mininet_links import offloads_off

IPPROTO_MPTCP = 262
BEGIN = 10
"""Segments in the window of each subflow, and its slow start threshold, at the beginning."""

HOLD = """
import sys, time
from switch.tcp import Controls
with Controls(["lia", "fully_coupled"]) as controls:
    print(controls.registered("lia"), controls.registered("fully_coupled"), flush=True)
    time.sleep(60)
"""


def available() -> set[str]:
    return set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


def mptcp_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)


def test_names_are_those_of_scenarios() -> None:
    assert set(tcp.COUPLED) < set(COUPLED_CONTROLS)
    assert set(tcp.RESPONSES) < set(KERNEL_RESPONSES) < set(RESPONSES)
    compiled = OBJECT.read_bytes()
    assert all(_placeholder(name) in compiled for name in tcp.NAMES)


def test_a_registered_name_says_which_control_it_is() -> None:
    controls = Controls([*tcp.NAMES, "reno"])
    assert [given_name(controls.registered(name)) for name in (*tcp.NAMES, "reno")] == [*tcp.NAMES, "reno"]
    assert all(len(controls.registered(name)) <= 15 for name in tcp.NAMES)
    assert given_name("bbr.v3") == "bbr.v3"


@pytest.fixture
def controls() -> Iterator[Controls]:
    try:
        with Controls(tcp.NAMES) as controls:
            yield controls
    except BpfUnavailable as reason:
        pytest.skip(str(reason))


def test_controls_go_with_their_process_however_it_ends(controls: Controls) -> None:
    with socket.socket() as sock:
        for name in tcp.NAMES:
            registered = controls.registered(name)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, registered.encode())
            used = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            assert used.rstrip(b"\0").decode() == registered
    command = [sys.executable, "-c", HOLD]
    holders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        names = [set(holder.stdout.readline().split()) for holder in holders if holder.stdout]
        assert names[0].isdisjoint(names[1])
        assert names[0] | names[1] < available()
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait()
        assert names[0].isdisjoint(available())
        assert names[1] < available()
    finally:
        for holder in holders:
            holder.terminate()
            holder.communicate()
    assert (names[0] | names[1]).isdisjoint(available())


def test_who_may_not_register_is_told_so() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    code = "from switch.tcp import Controls; Controls(['lia']).__enter__()"
    command = ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "this user may not load BPF programs: run it with sudo" in done.stderr


def grown_windows(size_bytes: int) -> dict[str, int]:
    """Send over two subflows that begin in congestion avoidance, and lose nothing."""
    Path("/proc/sys/net/ipv4/tcp_no_ssthresh_metrics_save").write_text("0")
    Path("/proc/sys/net/ipv4/tcp_early_retrans").write_text("0")
    command = ["unshare", "--net", "sh", "-c", "echo; exec sleep 30"]
    with (
        Controls(["fully_coupled"]) as controls,
        LinkEmulator(find_binary()) as emulator,
        subprocess.Popen(command, stdout=subprocess.PIPE) as receiver,
    ):
        assert receiver.stdout
        receiver.stdout.readline()
        ip([f"link add r{end} type veth peer name e{end}" for end in "ab"])
        ip([f"link set eb netns {receiver.pid}"])
        ip([*(f"address add 10.0.0.{host}/24 dev ea" for host in (1, 3)), "link set ea up"])
        ip(["address add 10.0.0.2/24 dev eb", "link set eb up"], receiver.pid)
        run(offloads_off("ea"))
        run(within(receiver.pid, offloads_off("eb")))
        ip([f"route change 10.0.0.0/24 dev ea initcwnd {BEGIN} ssthresh lock {BEGIN} rto_min 50s"])
        ip(["mptcp limits set subflows 1", "mptcp endpoint add 10.0.0.3 dev ea subflow"])
        emulator.add("w", "ra", "rb", {"delay_us": 10_000}, {"delay_us": 10_000})
        listener = in_namespace(receiver.pid, mptcp_socket)
        listener.bind(("10.0.0.2", 1))
        listener.listen()
        for host in (1, 3):  # afterwards the kernel has metrics of both, with the route's threshold
            with socket.create_connection(("10.0.0.2", 1), source_address=(f"10.0.0.{host}", 0)):
                listener.accept()[0].close()
        wait_until(lambda: run(["ip", "tcp_metrics"]).count("source") == 2, "metrics of both addresses")
        with listener, mptcp_socket() as sender, ThreadPoolExecutor() as thread:
            control = controls.registered("fully_coupled")
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
            sender.bind(("10.0.0.1", 0))
            sender.connect(("10.0.0.2", 1))
            peer, _ = listener.accept()
            sent = thread.submit(sender.sendall, bytes(size_bytes))
            while size_bytes:
                size_bytes -= len(peer.recv(1 << 20))
            sent.result()
            told = run(["ss", "-tinHO", "state", "established"])
            peer.close()
        receiver.kill()
    assert len(told.splitlines()) == 2, told
    return {what: sum(map(int, re.findall(rf" {what}:(\d+)", told))) for what in ("cwnd", "delivered")}


@pytest.mark.root
@pytest.mark.usefixtures("controls")
def test_the_running_kernel_counts_each_subflow_once() -> None:
    told = run_in_sandbox(grown_windows, 4_000_000)
    # Each acknowledged segment adds one over all windows, so the square of the whole grows by two.
    assert told["cwnd"] ** 2 > (2 * BEGIN) ** 2 + 0.8 * 2 * told["delivered"], told


METHODS = (
    ("lia", "default"),
    ("olia", "roundrobin"),
    ("balia", "minrtt"),
    ("fully_coupled", "redundant"),
)
RATE_BPS = 10e6


def transfers() -> list[dict[str, Any]]:
    """Two subflows over a bottleneck each, with each control and scheduler."""
    from benchmarks.kernel_tcp.guest import Order, network, transfer

    told = []
    for control, scheduler in METHODS:
        order = Order(
            control,
            1,
            bottlenecks=2,
            competes=False,
            rate_bps=RATE_BPS,
            scheduler=scheduler,
            warm_up_s=1.0,
            seconds=3.0,
        )
        with network(order):
            told.append(transfer(order))
    return told


@pytest.mark.timeout(600)
def test_the_virtual_kernel_has_all_controls_and_schedulers() -> None:
    told = run_in_virtual_kernel(transfers)
    for (control, scheduler), each in zip(METHODS, told, strict=True):
        lines = each["subflows"]
        assert len(lines) == 2
        assert all(f" {control} " in line for line in lines), lines
        acked = [int(re.search(r"bytes_acked:(\d+)", line)[1]) for line in lines]  # type: ignore[index]
        (goodput_bps,) = each["goodput_bps"]
        if scheduler == "redundant":
            # Every byte on each subflow: what the application gets is what one path carries.
            assert min(acked) >= 0.9 * max(acked)
            assert goodput_bps < RATE_BPS
            assert min(acked) * 8 > 3 * goodput_bps
        else:
            assert goodput_bps > 1.2 * RATE_BPS
