"""Our congestion controls in kernels: registered by BPF with the running one, built into the virtual one."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.model.settings import COUPLED_CONTROLS, KERNEL_RESPONSES, RESPONSES
from switch import tcp
from switch.errors import BpfUnavailable
from switch.tcp import Controls, given_name
from switch.tcp.controls import OBJECT, _placeholder
from tests.virtual_kernel import run_in_virtual_kernel

HOLD = """
import sys, time
from switch.tcp import Controls
with Controls(["lia", "fully_coupled"]) as controls:
    print(controls.registered("lia"), controls.registered("fully_coupled"), flush=True)
    time.sleep(60)
"""


def available() -> set[str]:
    return set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


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


def test_controls_go_with_their_process_however_it_ends() -> None:
    try:
        with Controls(tcp.NAMES) as controls, socket.socket() as sock:
            for name in tcp.NAMES:
                registered = controls.registered(name)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, registered.encode())
                used = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
                assert used.rstrip(b"\0").decode() == registered
    except BpfUnavailable as reason:
        pytest.skip(str(reason))
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


@pytest.mark.timeout(300)
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
