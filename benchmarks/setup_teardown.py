"""Sets a network up and tears it down many times, times both, and checks that nothing is left.

sudo .venv/bin/python benchmarks/setup_teardown.py --count 100

Everything happens in namespaces of its own. The exit status is 0 only if interfaces, network namespaces,
processes, open descriptors and bridges are afterwards just those from before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.command_line import command_line

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main() -> int:
    """Parse the command line and run in a sandbox."""
    parser = command_line(__doc__)
    parser.add_argument("--network", default="butterfly", help="as topologies.load takes it")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--in-sandbox", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.in_sandbox:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return measure(arguments.network, arguments.count)
    if os.geteuid() != 0:
        print("this makes networks: run it with sudo", file=sys.stderr)
        return 2
    sandbox = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    command = [*sandbox, sys.executable, str(Path(__file__).resolve()), *sys.argv[1:], "--in-sandbox"]
    return subprocess.run(command, check=False).returncode


def measure(spec: str, count: int) -> int:
    """Build and remove a network `count` times; print the times and what is left; return the exit status."""
    import topologies
    from switch import PrivateInstance
    from tests.sandbox import snapshot
    from topologies.mininet_builder import Emulation

    network = topologies.load(spec)
    ups, downs = [], []
    with tempfile.TemporaryDirectory() as folder, PrivateInstance(Path(folder) / "ovs") as ovs:
        with Emulation(network, ovs=ovs):
            pass  # The first one imports and loads what the others find.
        before = snapshot()
        for number in range(1, count + 1):
            start = time.perf_counter()
            emulation = Emulation(network, ovs=ovs)
            emulation.start()
            built = time.perf_counter()
            emulation.stop()
            ups.append(built - start)
            downs.append(time.perf_counter() - built)
            if number % 10 == 0:
                print(f"{number} of {count}", file=sys.stderr)
        after = snapshot()
        bridges = ovs.vsctl("list-br").split()
    for name, times in (("set-up", ups), ("tear-down", downs)):
        print(f"{name}: median {statistics.median(times):.2f} s, worst {max(times):.2f} s over {count}")
    left = {key: sorted(set(after[key]) - set(before[key])) for key in before} | {"bridges": bridges}
    print("left: " + (json.dumps(left) if any(left.values()) else "nothing"))
    return 1 if any(left.values()) or after != before else 0


if __name__ == "__main__":
    sys.exit(main())
