"""Transfers in a virtual kernel (docs/virtual.md): `-m benchmarks.unequal.virtual WANTED TOLD` runs there.

WANTED has a line for each network, TOLD gets one for each case.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.transport.addresses import FAR
from benchmarks.transport.kernel_links import KernelLinks
from benchmarks.transport.network import Network
from benchmarks.unequal.grid import TWO_TCPS, Case
from benchmarks.unequal.grid import Path as NetworkPath
from benchmarks.virtual_kernel import guest_file, lines_of

Seconds = dict[str, float]


def by_network(cases: Sequence[Case]) -> list[list[Case]]:
    """Return cases of the same paths and congestion control together: they share a network."""
    networks: dict[tuple[object, str], list[Case]] = {}
    for case in cases:
        networks.setdefault((case.paths, case.congestion_control), []).append(case)
    return list(networks.values())


def boot(networks: Sequence[Sequence[Case]], seed: int, queue_packets: int) -> list[tuple[Case, Seconds]]:
    """Make all transfers of these networks in a kernel of their own; return the seconds by kind of each case.

    RunFailed: The kernel did not come to the end; RuntimeError: A transfer in it failed.
    """
    with tempfile.TemporaryDirectory(prefix="unequal-") as name:
        folder = Path(name)
        (folder / "wanted").write_text("".join(_order(cases, queue_packets) for cases in networks))
        words = ["-m", "benchmarks.unequal.virtual", guest_file("wanted"), guest_file("told")]
        seconds = lines_of(words, folder, "told", seed=seed)
    flat = [case for cases in networks for case in cases]
    return [(case, dict(zip(case.kinds, row, strict=True))) for case, row in zip(flat, seconds, strict=True)]


def medians(made: Sequence[Seconds]) -> Seconds:
    """Return the median time of each kind over several runs of a case."""
    return {kind: statistics.median(seconds[kind] for seconds in made) for kind in made[0]}


def _order(cases: Sequence[Case], queue_packets: int) -> str:
    first = cases[0]
    order = {
        "paths": [asdict(path) for path in first.paths],
        "sizes": [case.size_bytes for case in cases],
        "kinds": first.kinds,
        "congestion_control": first.congestion_control,
        "queue_packets": queue_packets,
    }
    return json.dumps(order) + "\n"


def main(wanted: Path, told: Path) -> None:
    """Make all transfers, in the kernel."""
    with told.open("a") as file:
        for number, line in enumerate(wanted.read_text().splitlines()):
            order = json.loads(line)
            shapes = [NetworkPath(**path).shape(order["queue_packets"]) for path in order["paths"]]
            with contextlib.closing(Network(KernelLinks(), shapes, f"u{number}x")) as network:
                what = order["sizes"], order["kinds"], order["congestion_control"]
                for seconds in transfers(network, *what):
                    print(json.dumps(seconds), file=file, flush=True)


def transfers(
    network: Network, sizes: Sequence[int], kinds: Sequence[str], congestion_control: str
) -> Iterator[list[float]]:
    """Make the transfers of one network; yield the seconds of all kinds for each size."""
    for side in (0, 1):
        settings = (f"net.ipv4.tcp_congestion_control={congestion_control}", "net.ipv4.tcp_no_metrics_save=1")
        for setting in settings:
            subprocess.run(network.command(side, ["sysctl", "-qw", setting]), check=True)
    with contextlib.ExitStack() as ending:

        def start(side: int, words: list[str]) -> Iterator[dict[str, float]]:
            command = network.command(side, [sys.executable, "-m", "benchmarks.unequal.peer", *words])
            peer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            ending.callback(peer.wait)
            ending.callback(peer.kill)
            assert peer.stdout is not None
            return map(json.loads, peer.stdout)

        far = start(1, ["far"])
        next(far)
        near = start(0, ["near", *(f"{kind}:{size}" for size in sizes for kind in kinds)])
        for size in sizes:
            seconds = []
            for kind in kinds:
                began = next(near)
                ended = [next(far) for _ in range(2 if kind == TWO_TCPS else 1)]
                if (came := sum(each["bytes"] for each in ended)) != size:
                    raise RuntimeError(f"{kind}: {came} of {size} bytes came to {FAR}")
                seconds.append(max(each["last_s"] for each in ended) - began["began_s"])
            yield seconds


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
