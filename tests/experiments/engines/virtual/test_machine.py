"""The virtual kernel by itself: exact time, the same random numbers for a seed, and nothing left behind."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import MissingRequirement, RunFailed
from experiments.places.virtual import kernel_image, machine
from experiments.places.virtual.machine import Machine, Order, guest_python
from tests.fakes.waiting import wait_until
from tests.virtual_kernel import run_in_virtual_kernel

pytestmark = pytest.mark.timeout(900)

PACKET_BYTES, PAYLOAD_BYTES = 590, 536
"""Ethernet frame without checksum, and what of it is the application's without TCP options."""


def test_the_shipped_kernel_is_the_recorded_one() -> None:
    shipped = kernel_image.record()
    compressed = kernel_image.COMPRESSED.read_bytes()
    assert hashlib.sha256(compressed).hexdigest() == shipped.compressed_sha256
    assert hashlib.sha256(lzma.decompress(compressed)).hexdigest() == shipped.kernel_sha256
    data = b"".join(path.read_bytes() for path in kernel_image.sources())
    built_of = hashlib.sha256(data).hexdigest()
    assert built_of == shipped.sources_sha256, "its sources have changed: scripts/build-kernel --ship"


def ping_and_transfer() -> dict[str, object]:
    """Two hosts behind two links of 5 ms and 10 Mbit/s each: round trips, and what one TCP carries."""
    import subprocess
    from contextlib import ExitStack

    from switch.ovs import PrivateInstance
    from topologies import Link, Network, Node
    from topologies.mininet_builder import Emulation

    nodes = (Node(name="A", kind="host"), Node(name="S", kind="switch"), Node(name="B", kind="host"))
    links = tuple(
        Link(ends=ends, rate_bps=10e6, delay_us=5000, queue_packets=50) for ends in (("A", "S"), ("S", "B"))
    )
    network = Network(name="line", nodes=nodes, links=links)
    with ExitStack() as stack:
        ovs = stack.enter_context(PrivateInstance("/run/ovs"))
        emulation = stack.enter_context(
            Emulation(network, ovs=ovs, controller=("127.0.0.1", 6653), mtu=576, link_backend="netem")
        )
        ovs.ofctl("add-flow", "S", "actions=NORMAL")
        emulation.run("A", ["ping", "-c", "2", "-i", "0.2", emulation.host_ip("B")])  # ARP
        pinged = emulation.run("A", ["ping", "-c", "20", "-i", "0.2", emulation.host_ip("B")]).stdout
        for host in ("A", "B"):
            emulation.run(host, ["sysctl", "-q", "-w", "net.ipv4.tcp_timestamps=0"])
        server = emulation.popen("B", ["iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
        call = ["iperf3", "-c", emulation.host_ip("B"), "-t", "10", "-O", "2", "-J"]
        for _ in range(50):
            done = emulation.run("A", call, timeout=60)
            if done.returncode == 0:
                break
        server.wait(60)
        backend, datapath = emulation.link_backend, ovs.datapath
    goodput_bps = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    return {"ping": pinged, "goodput_bps": goodput_bps, "backend": backend, "datapath": datapath}


def test_links_are_exact() -> None:
    measured = run_in_virtual_kernel(ping_and_transfer)
    assert measured["backend"] == "netem"
    assert measured["datapath"] == "system"
    shortest, mean, longest, _ = map(
        float,
        re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) ms", str(measured["ping"])).groups(),  # type: ignore[union-attr]
    )
    # Twice two links of 5 ms, and 98 bytes at 10 Mbit/s on each of the four.
    assert shortest == pytest.approx(20 + 4 * 98 * 8 / 10e6 * 1e3, abs=0.02)
    assert longest == pytest.approx(shortest, abs=0.01)
    assert mean == pytest.approx(shortest, abs=0.01)
    assert measured["goodput_bps"] == pytest.approx(10e6 * PAYLOAD_BYTES / PACKET_BYTES, rel=0.005)


def clock_and_randomness() -> dict[str, Any]:
    import random
    import time

    before = time.monotonic_ns()
    sum(range(2_000_000))
    busy_ns = time.monotonic_ns() - before
    time.sleep(0.25)
    slept_ns = time.monotonic_ns() - before - busy_ns
    # A program that waits by asking for the time gets on too.
    deadline_ns = before + 251_000_000
    while time.monotonic_ns() < deadline_ns:
        pass
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "busy_ns": busy_ns,
        "slept_ns": slept_ns,
        "waited_ns": time.monotonic_ns() - deadline_ns,
        "kernel": os.urandom(16).hex(),
        "python": random.random(),
        "hash": hash("a string"),
        "user": os.geteuid(),
    }


def test_programs_take_no_time_and_a_seed_decides_what_is_random() -> None:
    first, again, other = (run_in_virtual_kernel(clock_and_randomness, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first["busy_ns"] == 0  # to read the clock takes no time
    assert 0 <= first["waited_ns"] < 2000
    assert first["slept_ns"] == pytest.approx(250e6, abs=2000)
    assert first["date"] == "2026-01-01"
    assert first["user"] == 0
    assert other["kernel"] != first["kernel"]
    assert other["python"] != first["python"]
    assert other["hash"] == first["hash"]


def clocks_differ() -> list[int]:
    """Return by how much readings of a clock differ from what the kernel answers when it is asked."""
    import ctypes
    import time

    class Timespec(ctypes.Structure):
        _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    libc, asked = ctypes.CDLL(None), Timespec()
    differ = []
    for number in range(300):
        time.sleep(1e-3 + number * 1.7e-5)
        for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC):
            read_ns = time.clock_gettime_ns(clock)
            libc.syscall(ctypes.c_long(228), clock, ctypes.byref(asked))  # clock_gettime(2)
            differ.append(asked.seconds * 10**9 + asked.nanoseconds - read_ns)
    return differ


def test_a_program_reads_the_kernels_clock() -> None:
    assert set(run_in_virtual_kernel(clocks_differ)) == {0}


def look_for_files(paths: list[str]) -> dict[str, int]:
    import time
    from contextlib import suppress

    before = time.monotonic_ns()
    for path in paths:
        with suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
    lookup_ns = time.monotonic_ns() - before
    for _ in range(500):
        time.monotonic_ns()
    return {"lookup_ns": lookup_ns, "asked_ns": time.monotonic_ns() - before - lookup_ns}


def test_what_a_program_does_on_its_way_takes_no_time() -> None:
    """How many files it looks for and how often it reads the clock differ between checkouts."""
    missing = [f"/etc/no-such-folder-{number}/no-such-file" for number in range(1000)]
    present = ["/etc/passwd", "/etc", sys.executable, __file__] * 250
    looked = run_in_virtual_kernel(look_for_files, missing + present)
    assert looked == {"lookup_ns": 0, "asked_ns": 0}


def write_outside() -> list[str]:
    from pathlib import Path

    def refusal(folder: str) -> str:
        try:
            Path(folder, "written-in-the-virtual-kernel").write_text("")
        except OSError as error:
            return str(error.strerror)
        return "it was written"

    return [refusal(folder) for folder in ("/", "/etc", str(Path(__file__).parent))]


def test_the_hosts_files_cannot_be_written() -> None:
    assert run_in_virtual_kernel(write_outside) == ["Read-only file system"] * 3
    assert not Path("/written-in-the-virtual-kernel").exists()


def order(tmp_path: Path, *argv: str) -> Order:
    return Order(argv=argv, seed=1, console=tmp_path / "console.log")


def processes_of(pid: int) -> list[str]:
    """Return the processes of a session that run, by its leader."""
    call = ["ps", "-o", "stat=,pid=", "-s", str(pid)]
    lines = subprocess.run(call, capture_output=True, text=True, check=False).stdout.splitlines()
    return [line for line in lines if not line.startswith("Z")]  # of those nobody has asked for the status


def test_the_programs_status_comes_out(tmp_path: Path) -> None:
    with Machine(order(tmp_path, "sh", "-c", "echo on the console; exit 7")) as booted:
        assert booted.wait(lambda: True) == 7
    assert "on the console" in (tmp_path / "console.log").read_text()


def test_packages_are_seen_in_folders_that_the_machine_has_its_own_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = tmp_path / "linked"
    (linked / "inner").mkdir(parents=True)
    (linked / "inner" / "module.py").write_text("")
    monkeypatch.setattr(machine, "_linked_folders", lambda: [str(linked), str(linked / "inner")])
    with Machine(order(tmp_path, "cat", str(linked / "inner" / "module.py"))) as booted:
        assert booted.wait(lambda: True) == 0


def test_machines_that_run_at_once_share_the_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of all commands: two on one core would take twice as long while another core is idle."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    with machine.claimed_core() as first, machine.claimed_core() as second, machine.claimed_core() as third:
        assert (first, second, third) == (3, 5, 3)
    with machine.claimed_core() as again:
        assert again == 3


def test_a_killed_machine_leaves_nothing(tmp_path: Path) -> None:
    with Machine(order(tmp_path, guest_python(), "-c", "while True: pass")) as booted:
        assert booted._process is not None
        leader, folder = booted._process.pid, booted._folder
        # The kernel, process 1 and the program.
        wait_until(lambda: len(processes_of(leader)) >= 3, "the start of the program", timeout_s=60)
    wait_until(lambda: processes_of(leader) == [], "the end of all processes")
    assert not folder.exists()


def test_a_machine_that_says_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SILENCE_LIMIT_S", 1.0)
    with (
        Machine(order(tmp_path, guest_python(), "-c", "while True: pass")) as booted,
        pytest.raises(RunFailed, match="nothing was heard from it for 1 s"),
    ):
        booted.wait(lambda: False)


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    with (
        Machine(order(tmp_path, "no-such-program")) as booted,
        pytest.raises(RunFailed, match=r"it ended before its program: .*'no-such-program'"),
    ):
        booted.wait(lambda: True)


def test_what_stops_the_boot_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "console.log").write_text("an earlier boot\n")
    order_of_nothing = replace(order(tmp_path, "true"), writable={"gone": tmp_path / "gone"})
    with (
        Machine(order_of_nothing) as booted,
        pytest.raises(RunFailed, match=r"its program: .*mount -t hostfs .*/gone: "),
    ):
        booted.wait(lambda: True)
    monkeypatch.setattr(machine, "guest_python", lambda: "/no-such-python")  # and the kernel panics
    reason = r"does not boot: it ended before its program: .*/no-such-python: not found\. Use --engine"
    with pytest.raises(MissingRequirement, match=reason):
        machine.require_boot()


def processes_environment() -> str:
    return Path("/proc/1/environ").read_bytes().decode().replace("\0", "\n")


def test_mounts_need_no_fsconfig() -> None:
    """mount(8) of util-linux 2.41 uses it where it may, and the kernel then refuses hostfs a folder."""
    assert machine.MOUNT_AT_ONCE in run_in_virtual_kernel(processes_environment)


def test_a_missing_program_of_the_host_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingRequirement, match="apt-get install util-linux"):
        machine.require()


def test_another_processor_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(MissingRequirement, match=r"x86_64 alone.*--engine live or --engine sim"):
        kernel_image.kernel()


def test_a_full_disk_and_a_changed_kernel_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(MissingRequirement, match="cannot be unpacked to .*XDG_CACHE_HOME"):
        kernel_image.kernel()
    changed = tmp_path / "linux.xz"
    changed.write_bytes(lzma.compress(b"something else"))
    monkeypatch.setattr(kernel_image, "COMPRESSED", changed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(MissingRequirement, match="is not the kernel that kernel.toml describes"):
        kernel_image.kernel()
    assert not (tmp_path / "cache").exists()
