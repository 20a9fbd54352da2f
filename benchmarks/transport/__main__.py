"""Measures throughput, cost and delay over two unlimited veth pairs between two network namespaces.

python -m benchmarks.transport [--quick] [--busy N] [--json]      (as root)

Plain TCP, two TCPs at once (iperf3, four processes), the kernel's MPTCP, asyncio's streams over one TCP, two
TCPs between two processes of one thread each ("pair"), and MSTCP over both paths (by Python's APIs, the Rust
API and the C interface) and over one ("single", which is plain TCP), in turn, several rounds; the medians of
the rounds are given. Then 8 streams over loopback beside asyncio's one TCP, and messages of 1 KiB and of
100 bytes there and back. CPU seconds are those of both ends together.
Namespaces and interfaces end with the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.command_line import command_line, exit_status
from benchmarks.occupied import add_busy, occupied
from benchmarks.performance import tables
from benchmarks.transport import programs
from benchmarks.transport.addresses import path_address
from benchmarks.transport.network import Network

INSIDE = "MSTCP_BENCHMARK_INSIDE"
MSTCP_KINDS = ("mstcp_protocol", "mstcp_streams", "mstcp_blocking", *programs.KINDS)
SINGLE_KINDS = ("mstcp_single_protocol", "mstcp_single_blocking")
IPERF_PATHS = {"tcp": 1, "tcp2": 2}
KINDS = (*IPERF_PATHS, "mptcp", "asyncio_streams", "tcp2_pair", *MSTCP_KINDS, *SINGLE_KINDS)
LATENCIES = ("asyncio_latency", "mstcp_latency")
MESSAGES = ("asyncio_message", "mstcp_message")
LOOPBACK = ("asyncio_loopback", "mstcp_loopback")
PROGRAMS = ("iperf3", "ip", "unshare", "nsenter", "sysctl")
LIMIT_S = 30.0
Result = dict[str, float]


def measure_peers(network: Network, kind: str, offset: int, seconds: float) -> Result:
    """Run one transfer between two processes of ours."""
    module = [sys.executable, "-m", "benchmarks.transport.peer"]
    arguments = [kind, str(offset), str(seconds)]
    before = network.carried_bytes()
    side = 0 if kind in LOOPBACK else 1
    with subprocess.Popen(
        network.command(side, [*module, "sink", *arguments]), stdout=subprocess.PIPE, text=True
    ) as sink:
        try:
            assert sink.stdout is not None
            if not sink.stdout.readline():
                raise RuntimeError(f"{kind}: the receiving process ended before it listened")
            source = subprocess.run(
                [*module, "source", *arguments],
                stdout=subprocess.PIPE,
                text=True,
                timeout=seconds + LIMIT_S,
                check=True,
            )
            told, _ = sink.communicate(timeout=LIMIT_S)
        except BaseException:
            sink.kill()
            raise
    ends = [_merged(told), _merged(source.stdout)]
    result = ends[0] | ends[1]
    result["cpu_s"] = ends[0]["cpu_s"] + ends[1]["cpu_s"]
    result["peak_mib"] = max(end["peak_mib"] for end in ends)
    carried = [after - earlier for after, earlier in zip(network.carried_bytes(), before, strict=True)]
    result["second_path_share"] = carried[1] / max(1, sum(carried))
    if "bytes" in result:
        result["gbps"] = result["bytes"] * 8e-9 / result["seconds"]
        result["cpu_s_per_gb"] = result["cpu_s"] / (result["bytes"] * 1e-9)
    return result


def children_cpu_s() -> float:
    """Return what the processes have cost that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _merged(lines: str) -> Result:
    merged: Result = {}
    for line in lines.splitlines():
        merged |= json.loads(line)
    return merged


def measure_iperf(network: Network, paths: int, seconds: float) -> Result:
    """Run one iperf3 transfer on each of the paths, all at once."""
    addresses = [path_address(path, 1) for path in range(paths)]
    servers, clients = [], []
    before_s = children_cpu_s()
    try:
        for address in addresses:
            command = network.command(1, ["iperf3", "-s", "-1", "-B", address, "--forceflush"])
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        for server in servers:
            assert server.stdout is not None
            while (line := server.stdout.readline()) and "listening" not in line:
                pass
        for address in addresses:
            command = ["iperf3", "-c", address, "-t", str(max(1, round(seconds))), "-J"]
            clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        reports = [json.loads(client.communicate(timeout=seconds + LIMIT_S)[0]) for client in clients]
        for server in servers:
            server.communicate(timeout=LIMIT_S)
    finally:
        for process in (*servers, *clients):
            process.kill()
    for report in reports:
        if "error" in report:
            raise RuntimeError(f"iperf3: {report['error']}")
    received = [report["end"]["sum_received"] for report in reports]
    return {
        "gbps": sum(each["bits_per_second"] for each in received) * 1e-9,
        "cpu_s_per_gb": (children_cpu_s() - before_s) / sum(each["bytes"] * 1e-9 for each in received),
    }


def measure(network: Network, rounds: int, seconds: float) -> dict[str, list[Result]]:
    """Measure all kinds in turn, round by round."""
    results: dict[str, list[Result]] = {kind: [] for kind in (*KINDS, *LOOPBACK, *LATENCIES, *MESSAGES)}
    for round_number in range(rounds):
        # Source ports of its own for each run: those of the one before may still be in TIME-WAIT.
        offsets = iter(range(20 * round_number, 20 * round_number + 20))
        # Twice over loopback: on two processors one round's ratio is anything from 0.8 to 3.
        for kind in (*KINDS, *LOOPBACK, *LOOPBACK):
            if kind in IPERF_PATHS:
                results[kind].append(measure_iperf(network, IPERF_PATHS[kind], seconds))
            else:
                results[kind].append(measure_peers(network, kind, next(offsets), seconds))
        for kind in (*LATENCIES, *MESSAGES):
            results[kind].append(measure_peers(network, kind, next(offsets), seconds / 2))
    return results


def median(results: Sequence[Result], key: str) -> float:
    """Return the median of a value over the rounds, to four digits."""
    return float(f"{statistics.median(result[key] for result in results):.4g}")


def ratio(results: dict[str, list[Result]], kinds: tuple[str, str], key: str) -> float:
    """Return the median over the rounds of the second kind's value over the first's in the same round."""
    pairs = zip(results[kinds[0]], results[kinds[1]], strict=True)
    return float(f"{statistics.median(mine[key] / theirs[key] for theirs, mine in pairs):.4g}")


def document(results: dict[str, list[Result]]) -> dict[str, Any]:
    """Return the medians under the names of the contract."""
    protocol = results["mstcp_protocol"]
    return {
        **{f"{kind}_gbps": median(results[kind], "gbps") for kind in KINDS[:4]},
        "mstcp": {
            "protocol_gbps": median(protocol, "gbps"),
            "streams_gbps": median(results["mstcp_streams"], "gbps"),
            "blocking_gbps": median(results["mstcp_blocking"], "gbps"),
            "rust_gbps": median(results["mstcp_rust"], "gbps"),
            "c_gbps": median(results["mstcp_c"], "gbps"),
            "cpu_s_per_gb": median(protocol, "cpu_s_per_gb"),
            "streams_8_ratio": ratio(results, LOOPBACK, "gbps"),
        },
        "message_ratio_p50": ratio(results, MESSAGES, "p50"),
        "cpu_s_per_gb": {kind: median(results[kind], "cpu_s_per_gb") for kind in (*KINDS, *LOOPBACK)},
        "of_tcp2": {kind: ratio(results, ("tcp2", kind), "gbps") for kind in MSTCP_KINDS},
        "of_tcp2_pair": {kind: ratio(results, ("tcp2_pair", kind), "gbps") for kind in MSTCP_KINDS},
        "of_tcp": {kind: ratio(results, ("tcp", kind), "gbps") for kind in SINGLE_KINDS},
        "of_mptcp": {kind: ratio(results, ("mptcp", kind), "gbps") for kind in MSTCP_KINDS},
        "message_latency_us": {
            kind.removesuffix("_latency"): {key: median(results[kind], key) for key in ("p50", "p99")}
            for kind in LATENCIES
        },
        "second_path_share": {
            kind: median(results[kind], "second_path_share") for kind in ("mptcp", *MSTCP_KINDS)
        },
        "peak_memory_mib": {kind: round(median(results[kind], "peak_mib"), 1) for kind in KINDS[2:]},
        "rounds": len(protocol),
        "load_average": os.getloadavg()[0],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 s instead of 5 of 4 s")
    add_busy(parser)
    args = parser.parse_args(argv)
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        parser.error(f"{', '.join(missing)} not found: run `make setup`")
    if os.geteuid() != 0:
        parser.error("network namespaces need root: run it with sudo")
    if INSIDE not in os.environ:
        try:
            programs.build()
        except RuntimeError as error:
            parser.error(str(error))
        words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m"]
        words += ["benchmarks.transport", *(sys.argv[1:] if argv is None else argv)]
        os.execvpe(words[0], words, {**os.environ, INSIDE: "1"})

    def run() -> int:
        with contextlib.closing(Network()) as network, occupied(args.busy):
            results = measure(network, 3 if args.quick else 5, 1.0 if args.quick else 4.0)
        told = document(results)
        print(json.dumps(told, indent=1) if args.json else "\n".join(tables.transport(told)))
        return 0

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main())
