"""What a flow's processes reported and logged, made into its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.analysis import logs
from experiments.analysis.logs import Log, Window
from experiments.analysis.metrics import measured_fields
from experiments.engines.live.agent import CarriedPath
from experiments.engines.live.child import ChildFailed
from experiments.engines.live.traffic import Transfer
from experiments.model.plan import RunPlan
from experiments.model.results import FlowResult, FlowSeries, PathAllocation, StreamSeries
from experiments.workloads import Ended
from switch.tcp import given_name

Route = Callable[[str, str], list[str] | None]


def flow_result(
    transfer: Transfer, plan: RunPlan, window: Window, route: Route, carried: list[CarriedPath] | None
) -> FlowResult:
    """Return the result of one flow.

    `route` returns the default path between two hosts, for flows that were given none; `carried` are the
    flow's paths, where its source does not know them.

    Raises:
        ChildFailed: the sockets did not use the congestion control that was asked for.
    """
    flow = plan.case.flows[transfer.name]
    streams = transfer.connected["streams"]
    writes, reads = transfer.writes(), transfer.reads()
    delays = logs.delays(writes, reads, window)
    if carried is None:
        default = None if all(stream["path"] for stream in streams) else route(flow.src, flow.dst)
        paths = [stream["path"] or default for stream in streams]
        allocated = [
            PathAllocation(path=path, rate_bps=stream["rate_bps"])
            for path, stream in zip(paths, streams, strict=True)
            if path is not None
        ]
        stream_series = _stream_series(transfer, paths, window)
    else:
        carried = _with_subflow_samples(transfer, carried)
        allocated = [PathAllocation(path=each.path, rate_bps=each.rate_bps) for each in carried]
        sampled = [
            _series(each.source_port, each.path, each.times_ns, each.counted_bytes, window)
            for each in carried
            if each.times_ns.size
        ]
        stream_series = sampled or _shared_series(transfer, carried, window)
    return FlowResult(
        flow=transfer.name,
        src=flow.src,
        dst=flow.dst,
        requested_bps=plan.requested_bps(transfer.name),
        allocated=allocated,
        goodput_bps=logs.goodput_bps(reads, window),
        delay_s=logs.delay_statistics(delays),
        out_of_order_ratio=_ratio(transfer.received),
        reorder_buffer_max_bytes=transfer.received["reorder_max_bytes"],
        bytes_written=transfer.sent["bytes_written"],
        bytes_read=transfer.received["bytes_read"],
        bytes_wrong=transfer.received["bytes_wrong"] + transfer.sent.get("request_bytes_wrong", 0),
        ticks_skipped=transfer.sent["ticks_skipped"],
        congestion_control=_congestion_control(transfer, plan.kernel_control_of(transfer.name)),
        group=flow.group,
        protocol=flow.protocol,
        **workload_results(transfer, writes, reads, window),
        series=FlowSeries(
            time_s=[float(time) for time in window.times_s()],
            goodput_bps=logs.goodput_series(reads, window),
            delay_mean_s=logs.delay_series(delays, window),
            streams=_with_windows(stream_series, transfer.samples_by_port(), window),
            delay_cdf_s=logs.delay_cdf(delays),
        ),
    )


def _ratio(received: dict[str, Any]) -> float | None:
    early, frames = received["out_of_order_frames"], received["frames_received"]
    return early / frames if early is not None and frames else None


def _congestion_control(transfer: Transfer, asked: str) -> str | None:
    """Return what the sockets of both ends use, which must be what was asked for; None where none says."""
    streams = (stream["congestion_control"] for stream in transfer.connected["streams"])
    told = [*(name for name in streams if name is not None), *transfer.received["congestion_control"]]
    used = {given_name(name) for name in told}
    if not used:
        return None
    if used != {asked}:
        names = ", ".join(sorted(str(name) for name in used))
        raise ChildFailed(f"flow {transfer.name} used congestion control {names} where {asked} was asked for")
    return asked


def _series(
    port: int | None, path: list[str] | None, times_ns: np.ndarray, counted: np.ndarray, window: Window
) -> StreamSeries:
    return StreamSeries(source_port=port, path=path, rate_bps=logs.rate_series(times_ns, counted, window))


def _stream_series(transfer: Transfer, paths: list[list[str] | None], window: Window) -> list[StreamSeries]:
    times_ns, counted = transfer.stream_samples()
    streams = zip(transfer.connected["streams"], paths, counted.T, strict=True)
    return [_series(stream["source_port"], path, times_ns, own, window) for stream, path, own in streams]


def _shared_series(transfer: Transfer, carried: list[CarriedPath], window: Window) -> list[StreamSeries]:
    """Return the series of the source's streams; a single one is shared out where the shares are known."""
    streams = transfer.connected["streams"]
    if len(streams) != 1 or any(each.share is None for each in carried):
        return _stream_series(transfer, [None] * len(streams), window)
    (whole,) = _stream_series(transfer, [None], window)
    shared = ([rate * (each.share or 0.0) for rate in whole.rate_bps] for each in carried)
    return [
        StreamSeries(source_port=each.source_port, path=each.path, rate_bps=rates)
        for each, rates in zip(carried, shared, strict=True)
    ]


def _with_subflow_samples(transfer: Transfer, carried: list[CarriedPath]) -> list[CarriedPath]:
    """Add what the source has read of its MPTCP subflows to the paths that they took."""
    if not transfer.connected["has_subflows"]:
        return carried
    samples = transfer.samples_by_port()
    subflows = []
    for each in carried:
        own = samples.get(each.source_port or 0)
        subflows.append(each if own is None else replace(each, times_ns=own[:, 0], counted_bytes=own[:, 2]))
    return subflows


def _with_windows(
    streams: list[StreamSeries], samples: Mapping[int, np.ndarray], window: Window
) -> list[StreamSeries]:
    """Add congestion window and round-trip time of those streams that have a connection of their own."""
    ports = [stream.source_port for stream in streams]

    def with_window(stream: StreamSeries) -> StreamSeries:
        rows = samples.get(stream.source_port or 0)
        if rows is None or ports.count(stream.source_port) > 1:
            return stream
        cwnd, rtt_us = (logs.latest_values(rows[:, 0], rows[:, column], window) for column in (3, 4))
        rtt_s = [value and value * 1e-6 for value in rtt_us]
        return stream.model_copy(update={"cwnd_bytes": cwnd, "rtt_s": rtt_s})

    return [with_window(stream) for stream in streams]


def workload_results(transfer: Transfer, writes: Log, reads: Log, window: Window) -> dict[str, Any]:
    """Return what depends on a flow's workload (ChildFailed: requests did not arrive as they were made)."""
    workload = transfer.flow.flow.workload
    none = np.empty(0, dtype=np.int64)
    asked_ns, end_offset = none, none
    if workload.asking is not None:
        made, arrived = transfer.received["request_bytes_written"], transfer.sent["request_bytes_read"]
        if made != arrived:
            raise ChildFailed(
                f"flow {transfer.name}: {made} bytes of requests were sent and {arrived} arrived"
            )
        asked_ns, end_offset = transfer.requests()
    ended = Ended(writes, reads, window, transfer.start_ns, transfer.source.seed, asked_ns, end_offset)
    return {"workload": workload.model_dump(mode="json"), **measured_fields(workload, ended)}
