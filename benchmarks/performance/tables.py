"""The tables of docs/performance.md: a function of a benchmark's document for each."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gomr import sizes
from benchmarks.gomr.cells import Cell
from benchmarks.gomr.tables import markdown
from benchmarks.pages import markdown_table

Document = Any
_TRANSPORTS = {
    "tcp": "one TCP (iperf3)",
    "tcp2": "two TCPs (iperf3)",
    "mptcp": "kernel MPTCP",
    "asyncio_streams": "asyncio's streams, one TCP",
    "mstcp_protocol": "MSTCP, protocol API",
    "mstcp_streams": "MSTCP, streams API",
    "mstcp_blocking": "MSTCP, blocking sockets",
    "mstcp_rust": "MSTCP, Rust",
    "mstcp_c": "MSTCP, C",
}
_CONTROLLER = {
    "installs_per_s_first_100": "flows installed a second, the first 100",
    "installs_per_s_last_100": "the last 100",
    "batch_paths_per_s": "paths a second, asked for at once",
    "request_p50_ms": "one request alone, median (ms)",
    "request_p99_ms": "99 % (ms)",
    "replan_ms": "a link with `replanned_flows` flows fails, until the last owner hears (ms)",
    "replanned_flows": "`replanned_flows`",
    "ready_s": "from the start until all rules are confirmed (s)",
    "core_rules_per_switch": "rules a switch that name no host",
    "peak_memory_mib": "memory of the controller (MiB)",
}


def transport(document: Document) -> Iterator[str]:
    """Yield rates, processor time and memory over two unlimited paths."""
    rates = {kind: document.get(f"{kind}_gbps") for kind in _TRANSPORTS}
    rates |= {f"mstcp_{name.removesuffix('_gbps')}": rate for name, rate in document["mstcp"].items()}
    head = ("two paths", "Gbit/s", "of two TCPs", "CPU s a GB, both ends", "peak MiB")
    yield from markdown_table(
        head,
        (
            (
                label,
                f"{rates[kind]:.1f}",
                f"{document['of_tcp2'][kind]:.2f}" if kind in document["of_tcp2"] else "",
                f"{document['cpu_s_per_gb'][kind]:.2f}",
                f"{document['peak_memory_mib'][kind]:.0f}" if kind in document["peak_memory_mib"] else "",
            )
            for kind, label in _TRANSPORTS.items()
        ),
    )


def unequal(document: Document) -> Iterator[str]:
    """Yield what one connection carries over two unequal paths."""
    names = ("of_better_path", "kernel_mptcp_of_better_path", "of_sum")
    yield from markdown_table(
        ("paths, Mbit/s at ms", "bytes", "of TCP on the better path", "kernel MPTCP of it", "of the sum"),
        (
            (" + ".join(row["paths"]), f"{row['bytes']:,}", *(f"{100 * row[name]:.0f} %" for name in names))
            for row in document
        ),
    )


def uplinks(document: Document) -> Iterator[str]:
    """Yield how long transfers paused whose host's addresses were replaced."""
    rows = []
    for direction, label in (("down", "to this host"), ("both", "both ways")):
        chosen = [row for row in document if row["direction"] == direction]
        columns = [row["pause_s"] for row in chosen], [s for row in chosen for s in row["reuse_s"]]
        figures = (f"{figure(column):.2f}" for column in columns for figure in (statistics.median, max))
        rows.append((label, str(len(chosen)), *figures))
    yield from markdown_table(
        ("bytes go", "seeds", "longest pause, s: median", "most", "used again after, s: median", "most"), rows
    )


def controller(document: Document) -> Iterator[str]:
    """Yield rates and times of the controller over 50 model switches with 500 flows."""
    yield from markdown_table(
        ("50 switches, 500 flows", ""),
        ((label, f"{document[name]:.4g}") for name, label in _CONTROLLER.items()),
    )


def drills(document: Document) -> Iterator[str]:
    """Yield what each drill cost."""
    columns = {"gap_s": (1.0, 3), "goodput_after_bps": (1e-6, 2), "bytes_lost": (1.0, 0)}
    yield from markdown_table(
        ("drill", "longest gap, s", "goodput afterwards, Mbit/s", "bytes lost"),
        (
            (
                f"`{name}`",
                *(f"{row[column] * scale:.{digits}f}" for column, (scale, digits) in columns.items()),
            )
            for name, row in document.items()
        ),
    )


def gomr(document: Document) -> Iterator[str]:
    """Yield the times of the engines on generated networks."""
    yield from markdown([Cell(**row) for row in document["cells"]], document["budget_s"]).splitlines()


def large(document: Document) -> Iterator[str]:
    """Yield whole matrices and fat-trees, by `native` and by other solvers."""
    yield from sizes.markdown(sizes.cells_of(document)).splitlines()


TABLES: dict[str, Callable[[Document], Iterator[str]]] = {
    "transport": transport,
    "unequal": unequal,
    "uplinks": uplinks,
    "controller": controller,
    "drills": drills,
    "gomr": gomr,
    "sizes": large,
}
