"""Measures transfers over two shaped paths, both directions at once: python -m benchmarks.shaped (as root).

With `--virtual` in virtual time (docs/virtual.md), where neither root is needed nor an idle machine.

Every pair of rates with every pair of one-way delays, as the kernel's own MPTCP test has them. No rate is
told to the library: the scheduler must find the shares. Printed for each: the part of the paths' summed rate
(headers and the acknowledgements of the other direction taken off) that the slower direction reached, raw,
less the start-up, and of all but its first quarter; and how long the kernel's MPTCP took, and two plain TCP
connections, one on each path and both sending without end, for as many bytes (1.00: as long as MSTCP; above:
MSTCP was faster).

The start-up is estimated: bytes take a path's delay to arrive, and a window that starts with ten segments and
doubles each round trip leaves the path idle until it fills it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import select
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from benchmarks.shaped import virtual
from benchmarks.transport.network import Links, Network
from experiments.errors import ExperimentError
from topologies.link_emulator import LinkEmulator, LinkError

INSIDE = "MSTCP_SHAPED_INSIDE"
RATES_MBPS = ((10, 10), (30, 10), (10, 3), (100, 20))
DELAYS_MS = ((0, 0), (1, 25), (25, 1), (1, 50), (10, 200))
SEGMENT_BYTES, FRAME_BYTES = 1448, 1514
ACK_BYTES, SEGMENTS_AN_ACK = 66, 2
INITIAL_SEGMENTS = 10
LEAST_SHARE = {False: 0.97, True: 0.95}
"""Of what TCP can carry, less start-up, one way and both ways: less is a failure."""
LIMIT_S = 120.0
OTHERS = ("mptcp", "tcp2")


@dataclass(frozen=True)
class Case:
    """Two paths: rates in Mbit/s on the wire and one-way delays in ms."""

    rates_mbps: tuple[float, float]
    delays_ms: tuple[float, float]

    both_ways: bool = True

    @property
    def goodput_bps(self) -> list[float]:
        """What TCP can carry on each path beside the acknowledgements of as much in the other direction."""
        frame_bytes = FRAME_BYTES + (ACK_BYTES / SEGMENTS_AN_ACK if self.both_ways else 0)
        return [rate * 1e6 * SEGMENT_BYTES / frame_bytes for rate in self.rates_mbps]

    def startup_s(self) -> float:
        """Return how much later than at the summed rate the bytes can be there."""
        missing_bits = 0.0
        for rate_bps, delay_ms in zip(self.goodput_bps, self.delays_ms, strict=True):
            missing_bits += rate_bps * delay_ms * 1e-3
            pipe_bits = rate_bps * 2 * delay_ms * 1e-3
            window_bits = INITIAL_SEGMENTS * SEGMENT_BYTES * 8.0
            while window_bits < pipe_bits:
                missing_bits += pipe_bits - window_bits
                window_bits *= 2
        return missing_bits / sum(self.goodput_bps)

    def __str__(self) -> str:
        rates = "+".join(f"{rate:g}" for rate in self.rates_mbps)
        delays = ", ".join(f"{delay:g}" for delay in self.delays_ms)
        return f"{rates} Mbit/s, {delays} ms"


class Seconds(NamedTuple):
    """How long a transfer took, and all but its first quarter."""

    all: float
    but_quarter: float


class StalledError(RuntimeError):
    """A transfer took too long."""


@dataclass
class Running:
    """One transfer that is under way."""

    case: Case
    network: Network
    peers: list[subprocess.Popen[str]]

    def finish(self) -> Seconds:
        """Wait for it; return how long the slower direction took."""
        ends = [self._report(peer) for peer in self.peers]
        last = max(ends, key=lambda end: end["done_s"])
        return Seconds(
            last["done_s"] - min(end["began_s"] for end in ends), last["done_s"] - last["quarter_s"]
        )

    def _report(self, peer: subprocess.Popen[str]) -> dict[str, float]:
        assert peer.stdout is not None
        if not select.select([peer.stdout], [], [], LIMIT_S)[0]:
            raise StalledError(f"{self.case}: nothing was heard of a transfer for {LIMIT_S:g} s")
        line = peer.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.case}: a host's process ended before its transfer")
        report: dict[str, float] = json.loads(line)
        return report

    def close(self) -> None:
        """End the processes and the network, whatever fails."""
        with contextlib.ExitStack() as steps:
            steps.callback(self.network.close)
            for peer in self.peers:
                peer.kill()
                steps.callback(peer.communicate)


def begin(emulator: Links, case: Case, name: str, kind: str, arguments: argparse.Namespace) -> Running:
    """Make the network and start the transfer."""
    shapes = [
        {"rate_bps": rate * 1e6, "delay_us": delay * 1e3, "queue_packets": arguments.queue_packets}
        for rate, delay in zip(case.rates_mbps, case.delays_ms, strict=True)
    ]
    running = Running(case, Network(emulator, shapes, name), [])
    try:
        for number, side in ((1, "far"), (0, "near")):
            words = [sys.executable, "-m", "benchmarks.shaped.peer", side, kind]
            sizes = [arguments.mib << 20, 0 if arguments.one_way else arguments.mib << 20]
            words += map(str, sizes if side == "near" else reversed(sizes))
            words += [arguments.scheduler, arguments.congestion_control]
            command = running.network.command(number, words)
            running.peers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            if side == "far":
                running._report(running.peers[0])
    except BaseException:
        running.close()
        raise
    return running


def groups(cases: Sequence[Case], most_mbps: float) -> Iterator[list[Case]]:
    """Return the cases in groups that run at once, none of more rate than that (unless it is one case)."""
    group: list[Case] = []
    for case in sorted(cases, key=lambda case: sum(case.rates_mbps)):
        if group and sum(sum(other.rates_mbps) for other in (*group, case)) > most_mbps:
            yield group
            group = []
        group.append(case)
    if group:
        yield group


def cases(arguments: argparse.Namespace) -> list[Case]:
    """Return the cases that were asked for."""
    both_ways = not arguments.one_way
    return [Case(rates, delays, both_ways) for rates in arguments.rates for delays in arguments.delays]


def transfers(
    emulator: Links, wanted: Sequence[Case], arguments: argparse.Namespace
) -> Iterator[tuple[Case, str, Seconds]]:
    """Make one repetition of all transfers; yield case, kind and seconds of each."""
    for kind in arguments.kinds:
        for group in groups(wanted, arguments.most_mbps):
            with contextlib.ExitStack() as running:
                begun = []
                for number, case in enumerate(group):
                    begun.append(begin(emulator, case, f"s{number}", kind, arguments))
                    running.callback(begun[-1].close)
                for transfer in begun:
                    yield transfer.case, kind, finished(transfer, kind)


def measure(arguments: argparse.Namespace, words: Sequence[str]) -> dict[Case, dict[str, list[Seconds]]]:
    """Return the seconds of all transfers by case and kind; `words` are the command line."""
    wanted = cases(arguments)
    seconds: dict[Case, dict[str, list[Seconds]]] = {
        case: {kind: [] for kind in arguments.kinds} for case in wanted
    }
    with contextlib.ExitStack() as ending:
        emulator = None if arguments.virtual else ending.enter_context(LinkEmulator())
        for repetition in range(arguments.repetitions):
            made: Iterable[tuple[Case, str, Seconds]]
            if emulator is None:
                booted = virtual.boot(words, seed=repetition + 1)
                made = ((wanted[number], kind, Seconds(*both)) for number, kind, both in booted)
            else:
                made = transfers(emulator, wanted, arguments)
            for case, kind, one in made:
                seconds[case][kind].append(one)
            done = f"repetition {repetition + 1} of {arguments.repetitions} is done"
            print(done, file=sys.stderr, flush=True)
    return seconds


def finished(transfer: Running, kind: str) -> Seconds:
    """Wait for a transfer. One of the kernel's that stands still counts as the limit: MSTCP must not."""
    try:
        return transfer.finish()
    except StalledError as error:
        if kind == "mstcp":
            raise
        print(f"benchmarks.shaped: {kind}: {error}", file=sys.stderr, flush=True)
        return Seconds(LIMIT_S, LIMIT_S)


def results(seconds: dict[Case, dict[str, list[Seconds]]], mib: int) -> list[dict[str, Any]]:
    """Return what the seconds mean, a case each."""
    rows = []
    for case, kinds in seconds.items():
        least_s = (mib << 23) / sum(case.goodput_bps)
        startup_s = case.startup_s()
        mine = [one.all for one in kinds["mstcp"]]
        but_quarter_s = statistics.mean(one.but_quarter for one in kinds["mstcp"])
        row = asdict(case) | {
            "seconds": mine,
            "startup_s": startup_s,
            "share": least_s / statistics.mean(mine),
            "share_less_startup": least_s / (statistics.mean(mine) - startup_s),
            "least_share_less_startup": least_s / (max(mine) - startup_s),
            "share_but_quarter": 0.75 * least_s / but_quarter_s,
        }
        for other in kinds.keys() - {"mstcp"}:
            row[f"{other}_seconds"] = [one.all for one in kinds[other]]
            row[f"of_{other}"] = statistics.mean(row[f"{other}_seconds"]) / statistics.mean(mine)
        rows.append(row)
    return rows


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Return the results as a table."""
    lines = [
        "| Mbit/s | ms | s | % | less start-up (least) | but a quarter % | MPTCP's time | two TCPs' |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        rates = ", ".join(f"{rate:g}" for rate in row["rates_mbps"])
        delays = ", ".join(f"{delay:g}" for delay in row["delays_ms"])
        less = f"{100 * row['share_less_startup']:.1f} ({100 * row['least_share_less_startup']:.1f})"
        others = " | ".join(f"{row[name]:.2f}" if name in row else "" for name in ("of_mptcp", "of_tcp2"))
        cells = [rates, delays, f"{statistics.mean(row['seconds']):.2f}", f"{100 * row['share']:.1f}", less]
        cells += [f"{100 * row['share_but_quarter']:.1f}", others]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def pair(text: str) -> tuple[float, float]:
    """Return two numbers that are not negative, from `10,3`."""
    first, second = (float(part) for part in text.split(","))
    if not (math.isfinite(first) and math.isfinite(second) and min(first, second) >= 0):
        raise ValueError(text)
    return first, second


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shaped",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repetitions", type=int, default=10, metavar="N", help="default 10")
    parser.add_argument("--mib", type=int, default=16, help="each way (default 16)")
    parser.add_argument("--rates", type=pair, nargs="+", default=RATES_MBPS, metavar="A,B", help="Mbit/s")
    parser.add_argument(
        "--delays", type=pair, nargs="+", default=DELAYS_MS, metavar="A,B", help="ms, one way"
    )
    parser.add_argument("--scheduler", default="earliest", help="default earliest")
    parser.add_argument(
        "--queue-packets", type=int, default=1000, metavar="N", help="default 1000, as netem's"
    )
    parser.add_argument("--one-way", action="store_true", help="one direction alone (default both at once)")
    parser.add_argument("--congestion-control", default="", metavar="NAME", help="default the system's")
    parser.add_argument(
        "--beside",
        nargs="*",
        choices=OTHERS,
        default=OTHERS,
        metavar="KIND",
        help="what else is measured: mptcp, tcp2 (default both; none without a KIND)",
    )
    parser.add_argument(
        "--most-mbps",
        type=float,
        default=130.0,
        help="cases run at once up to this sum (default 130)",
    )
    parser.add_argument(
        "--virtual",
        action="store_true",
        help="in virtual time, with bbr where no congestion control is named",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args(argv)
    if os.geteuid() != 0 and not arguments.virtual:
        parser.error("network namespaces need root: run it with sudo")
    if arguments.repetitions < 1 or arguments.mib < 1:
        parser.error("--repetitions and --mib must be at least 1")
    arguments.kinds = ("mstcp", *arguments.beside)
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run the table; return 1 if a case stays below the share that is asked for."""
    command_line = sys.argv[1:] if argv is None else argv
    arguments = parse(command_line)
    if INSIDE not in os.environ and not arguments.virtual:
        words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m"]
        words += ["benchmarks.shaped", *command_line]
        os.execvpe(words[0], words, {**os.environ, INSIDE: "1"})
    try:
        rows = results(measure(arguments, command_line), arguments.mib)
    except KeyboardInterrupt:
        return 130
    except (ExperimentError, LinkError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"benchmarks.shaped: {error}", file=sys.stderr)
        return 1
    print(json.dumps(rows, indent=1) if arguments.json else markdown(rows))
    return int(any(row["share_less_startup"] < LEAST_SHARE[not arguments.one_way] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
