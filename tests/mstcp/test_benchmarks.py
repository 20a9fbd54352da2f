"""The benchmarks' networks leave nothing behind, whatever dies before they are taken apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mstcp.proto.generate import ROOT

PROGRAM = """
import subprocess, sys
from benchmarks.transport.network import Network
from topologies.link_emulator import LinkEmulator

emulator = LinkEmulator()
shape = {"rate_bps": 1e7, "delay_us": 1000, "queue_packets": 100}
network = Network(emulator, [shape, shape], "t")
holders = [holder for holder in network._holders if holder is not None]
if sys.argv[1] == "emulator":
    emulator.stop()
elif sys.argv[1] == "hosts":
    for holder in holders:
        holder.kill()
        holder.wait()
network.close()
emulator.stop()
links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
assert " t0a" not in links and " t1a" not in links, links
assert all(holder.poll() is not None for holder in holders)
print("nothing is left")
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.parametrize("dies", ["nothing", "emulator", "hosts"])
def test_a_shaped_network_is_taken_apart_after_whatever_died(dies: str) -> None:
    argv = ["unshare", "--net", sys.executable, "-c", PROGRAM, dies]
    done = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is left" in done.stdout


@pytest.mark.timeout(900)
def test_a_shaped_transfer_takes_the_same_virtual_time_whatever_the_machine_does() -> None:
    words = ["--virtual", "--mib", "1", "--rates", "10,10", "--delays", "1,5", "--repetitions", "1"]
    argv = [sys.executable, "-m", "benchmarks.shaped", *words, "--beside", "--json"]
    first, second = (
        json.loads(subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, check=False).stdout)
        for _ in range(2)
    )
    assert first == second
    (row,) = first
    assert (1 << 23) / sum(row["rates_mbps"]) / 1e6 < row["seconds"][0] < 1.0
