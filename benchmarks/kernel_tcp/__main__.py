"""Compares controls and responses in the virtual kernel with the simulator's.

    python -m benchmarks.kernel_tcp controls --seeds 10      # one bottleneck, MPTCP over TCP
    python -m benchmarks.kernel_tcp singles --seeds 4        # the same, sent segment by segment
    python -m benchmarks.kernel_tcp bottlenecks --seeds 4    # two, with a TCP on each, 100 s
    python -m benchmarks.kernel_tcp bottlenecks-singly --seeds 3
    python -m benchmarks.kernel_tcp losses --seeds 16        # one TCP whose packets are lost at random
    python -m benchmarks.kernel_tcp reordering --seeds 5     # 2 % of packets 15 ms late

Neither root nor an idle machine is needed; each seed is a kernel of its own. It prints 95 % intervals.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import netsim_native

from benchmarks.command_line import command_line
from benchmarks.kernel_tcp.guest import Order
from benchmarks.tables.cells import interval
from benchmarks.virtual_kernel import guest_file, lines_of
from experiments.model.settings import KERNEL_RESPONSES, RESPONSE_CONTROLS, Tcp
from experiments.protocols.mptcp import DSS_BYTES

CONTROLS = ("reno", "lia", "olia", "balia", "fully_coupled")
MSS_BYTES = 1448
JITTER_US = 1000.0
SEGMENT_BY_SEGMENT = ("ipv4.tcp_min_tso_segs=1",)
Rates = list[float]


def in_kernel(orders: Sequence[Order]) -> list[Rates]:
    """Run the orders in a kernel of their own, whose random numbers are of the first one's seed."""
    with tempfile.TemporaryDirectory(prefix="kernel-tcp-") as name:
        folder = Path(name)
        (folder / "wanted").write_text("".join(json.dumps(asdict(order)) + "\n" for order in orders))
        words = ["-m", "benchmarks.kernel_tcp.guest", guest_file("wanted"), guest_file("told")]
        told = lines_of(words, folder, "told", seed=orders[0].seed)
    return [each["goodput_bps"] for each in told]


def simulated(order: Order) -> Rates:
    """Run an order in the simulator."""
    delay_us = order.round_trip_s * 1e6
    links: list[dict[str, Any]] = []
    for index in range(order.bottlenecks):
        narrow = _link(f"R{index}", f"D{index}", order.rate_bps, delay_us / 2, order.queue_packets)
        links.append(narrow | {"loss": order.loss})
        links += [_link("M", f"R{index}"), _link(f"T{index}", f"R{index}")]
        # Without chance two bottlenecks fall into one of two cycles for ever.
        jitter_us = JITTER_US if order.bottlenecks > 1 else 0.0
        links.append(_link(f"D{index}", "B") | {"jitter_us": jitter_us})
    ways = [["M", f"R{index % order.bottlenecks}", f"D{index % order.bottlenecks}", "B"] for index in (0, 1)]
    if order.kind == "mptcp":
        coupled = "uncoupled" if order.control == "reno" else order.control
        mptcp = {"mss_bytes": MSS_BYTES - DSS_BYTES, "mptcp": {"congestion_control": coupled}}
        flows = [_flow("m", "M", "mptcp", ways) | mptcp]
    else:
        flows = [_flow("m", "M", "tcp", ways[:1]) | {"congestion_control": order.control}]
    flows += [
        _flow(f"t{index}", f"T{index}", "tcp", [[f"T{index}", f"R{index}", f"D{index}", "B"]])
        for index in range(order.bottlenecks if order.competes else 0)
    ]
    for number, flow in enumerate(flows):
        flow["start_s"] = (order.seed * 0.37 + number * 0.61) % 1
    description = {
        "format": 1,
        "seed": order.seed,
        "duration_s": order.seconds,
        "warm_up_s": order.warm_up_s,
        "packet_overhead_bytes": 34,
        "links": links,
        "flows": flows,
        "tcp": {"profile": "linux", "congestion_control": "reno", "mss_bytes": MSS_BYTES} | _BUFFERS,
    }
    told = json.loads(netsim_native.run(json.dumps(description)))
    return [flow["goodput_bps"] for flow in told["flows"]]


_BUFFERS = {"send_buffer_bytes": 4 << 20, "receive_buffer_bytes": 6 << 20}


def _link(
    a: str, b: str, rate_bps: float = 1e9, delay_us: float = 1.0, queue_packets: int = 10_000
) -> dict[str, Any]:
    return {"ends": [a, b], "rate_bps": rate_bps, "delay_us": delay_us, "queue_packets": queue_packets}


def _flow(name: str, src: str, protocol: str, ways: list[list[str]]) -> dict[str, Any]:
    traffic = {"kind": "bulk"}
    paths = [{"path": way} for way in ways]
    return {"name": name, "src": src, "dst": "B", "protocol": protocol, "traffic": traffic, "paths": paths}


def controls(seed: int) -> dict[str, Order]:
    """Return MPTCP of two subflows against one TCP, by control."""
    return {name: Order(name, seed) for name in CONTROLS}


def singles(seed: int) -> dict[str, Order]:
    """Return the same where each segment is built and sent by itself, as the simulator's are."""
    return _singly(controls(seed))


def _singly(orders: dict[str, Order]) -> dict[str, Order]:
    return {name: replace(order, sysctls=SEGMENT_BY_SEGMENT) for name, order in orders.items()}


def bottlenecks(seed: int) -> dict[str, Order]:
    """Return MPTCP over two bottlenecks with a TCP on each, by control."""
    return {
        name: replace(order, bottlenecks=2, rate_bps=12.5e6, seconds=100.0)
        for name, order in controls(seed).items()
    }


def bottlenecks_singly(seed: int) -> dict[str, Order]:
    """Return the same sent segment by segment."""
    return _singly(bottlenecks(seed))


def losses(seed: int) -> dict[str, Order]:
    """Return one TCP that loses packets at random each way."""
    alone = Order("cubic", seed, kind="tcp", competes=False, queue_packets=83, seconds=60.0)
    near, far = replace(alone, round_trip_s=0.05), replace(alone, round_trip_s=0.2)
    return {
        "CUBIC, 50 ms, 1 BDP, 0.1 % lost": replace(near, loss=0.001),
        "CUBIC, 50 ms, 1 BDP, 2 % lost": replace(near, loss=0.02),
        "Reno, 200 ms, 0.25 BDP, 0.1 % lost": replace(far, control="reno", loss=0.001),
        "BBR, 200 ms, 0.25 BDP, 1 % lost": replace(far, control="bbr", loss=0.01),
    }


def reordering(seed: int) -> dict[str, Order]:
    """Return one TCP of which 2 % of packets come late, by response."""
    plain = Order("reno", seed, kind="tcp", competes=False, late=0.02)
    orders = {"Linux's default": plain}
    for name in KERNEL_RESPONSES:
        given = Tcp(reordering=name).sysctls()  # type: ignore[arg-type]
        sysctls = tuple(f"{key.removeprefix('net.')}={value}" for key, value in given.items())
        control = name if name in RESPONSE_CONTROLS else "reno"
        orders[name] = replace(plain, control=control, sysctls=sysctls)
    return orders


def _table(runs: Sequence[Rates], ratio: bool) -> str:
    """Return the cells of one row: goodputs in Mbit/s over the seeds, or the first over the second."""
    if ratio:
        return interval(first / second for first, second, *_ in runs)
    return " | ".join(interval(column, 1e-6) for column in zip(*runs, strict=True))


TABLES: dict[str, Callable[[int], dict[str, Order]]] = {
    "controls": controls,
    "singles": singles,
    "bottlenecks": bottlenecks,
    "bottlenecks-singly": bottlenecks_singly,
    "losses": losses,
    "reordering": reordering,
}


def main() -> None:
    """Run a table's orders and print it."""
    parser = command_line(__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    wanted = [TABLES[arguments.table](seed) for seed in range(1, arguments.seeds + 1)]
    kernel = [in_kernel(list(orders.values())) for orders in wanted]
    ratio = arguments.table in ("controls", "singles")
    for row, name in enumerate(wanted[0]):
        sides = [[told[row] for told in kernel]]
        if arguments.table != "reordering":
            sides.append([simulated(orders[name]) for orders in wanted])
        cells = [_table(side, ratio) for side in sides]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
