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
def test_unequal_paths_take_the_same_virtual_time_whatever_the_machine_does() -> None:
    words = ["--paths", "10@1", "10@5", "--sizes", "1000000", "--json"]
    argv = [sys.executable, "-m", "benchmarks.unequal", *words]
    first, second = (json.loads(subprocess.check_output(argv, cwd=ROOT)) for _ in range(2))
    assert first == second
    (row,) = first
    assert 1 < row["of_better_path"] < 2
