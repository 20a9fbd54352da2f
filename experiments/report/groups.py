"""Flows of one group as one flow: what hundreds of demands got together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.analysis import logs
from experiments.model.results import CompletionTimes, DelayStatistics, FlowResult, FlowSeries, TransferCounts


def fold_groups(flows: Sequence[FlowResult]) -> list[FlowResult]:
    """Return the flows, those of each group as one in the place of its first.

    Rates, bytes and transfers are summed. Delays are weighted by the bytes that were read; their quantiles
    are those of the mixture. Completion times are those of all transfers, each counting once.
    """
    groups: dict[tuple[str, str], list[FlowResult]] = {}
    for flow in flows:
        key = ("flow", flow.flow) if flow.group is None else ("group", flow.group)
        groups.setdefault(key, []).append(flow)
    return [
        _fold(name, members) if kind == "group" else members[0] for (kind, name), members in groups.items()
    ]


def completion_times(flow: FlowResult) -> CompletionTimes | None:
    """Return a flow's completion times: of its requests, or of its one file."""
    if flow.fct_s is not None or flow.completion_s is None:
        return flow.fct_s
    return logs.completion_statistics(np.array([flow.completion_s]))


def _fold(name: str, flows: list[FlowResult]) -> FlowResult:
    """Return the whole of a group."""
    first = flows[0]
    src, dst = (_common(ends) for ends in zip(*((flow.src, flow.dst) for flow in flows), strict=True))
    kinds = {flow.workload_kind for flow in flows}
    controls = sorted({flow.congestion_control for flow in flows if flow.congestion_control})
    return FlowResult(
        flow=f"{name} ({len(flows)})",
        src=src,
        dst=dst,
        requested_bps=sum(flow.requested_bps for flow in flows),
        allocated=[],
        goodput_bps=sum(flow.goodput_bps for flow in flows),
        delay_s=_delay(flows),
        out_of_order_ratio=_weighted_mean(flows, [flow.out_of_order_ratio for flow in flows]),
        reorder_buffer_max_bytes=max(
            (f.reorder_buffer_max_bytes for f in flows if f.reorder_buffer_max_bytes is not None),
            default=None,
        ),
        bytes_written=sum(flow.bytes_written for flow in flows),
        bytes_read=sum(flow.bytes_read for flow in flows),
        bytes_wrong=sum(flow.bytes_wrong for flow in flows),
        ticks_skipped=sum(flow.ticks_skipped for flow in flows),
        congestion_control=" or ".join(controls) or None,
        series=_series(first, flows),
        workload={"kind": kinds.pop() if len(kinds) == 1 else "mixed"},
        group=name,
        transfers=_transfers(flows),
        fct_s=_completions(flows),
    )


def _common(ends: Sequence[str]) -> str:
    return ends[0] if len(set(ends)) == 1 else f"{len(set(ends))} hosts"


def _completions(flows: list[FlowResult]) -> CompletionTimes | None:
    # Requests are known by their quantiles alone, each of which stands for its share of them.
    times: list[float] = []
    weights: list[float] = []
    for flow in flows:
        fct = completion_times(flow)
        if fct is not None and flow.transfers is not None:
            values = [fct.mean] if flow.completion_s is not None else fct.quantiles
            times += values
            weights += [flow.transfers.completed / len(values)] * len(values)
    if not times:
        return None
    quantiles = _quantiles(times, weights)
    mean = float(np.average(times, weights=weights))
    return CompletionTimes(**logs.summary_of(mean, quantiles), quantiles=quantiles)


def _quantiles(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    # In millionths of the lightest, since weights are whole numbers.
    whole = np.maximum(1, np.rint(np.array(weights) / min(w for w in weights if w > 0) * 1e6)).astype(
        np.int64
    )
    quantiles = logs.weighted_quantiles(np.array(values, dtype=np.float64), whole, logs.QUANTILES)
    return [float(value) for value in quantiles]


def _transfers(flows: list[FlowResult]) -> TransferCounts | None:
    counts = [flow.transfers for flow in flows if flow.transfers is not None]
    if not counts:
        return None
    return TransferCounts(
        started=sum(count.started for count in counts), completed=sum(count.completed for count in counts)
    )


def _delay(flows: list[FlowResult]) -> DelayStatistics | None:
    arrived = [flow for flow in flows if flow.delay_s is not None and flow.goodput_bps > 0]
    cdf = _delay_cdf(arrived)
    if not cdf:
        return None
    mean = _weighted_mean(arrived, [flow.delay_s.mean if flow.delay_s else None for flow in arrived])
    return DelayStatistics(**logs.summary_of(mean or 0.0, cdf))


def _delay_cdf(flows: list[FlowResult]) -> list[float]:
    values: list[float] = []
    weights: list[float] = []
    for flow in flows:
        cdf = flow.series.delay_cdf_s
        if cdf and flow.goodput_bps > 0:
            values += cdf
            weights += [flow.goodput_bps] * len(cdf)
    return _quantiles(values, weights) if values else []


def _weighted_mean(flows: Sequence[FlowResult], values: Sequence[float | None]) -> float | None:
    pairs = [
        (value, flow.goodput_bps)
        for flow, value in zip(flows, values, strict=True)
        if value is not None and flow.goodput_bps > 0
    ]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def _series(first: FlowResult, flows: list[FlowResult]) -> FlowSeries:
    count = len(first.series.time_s)
    read = [0.0] * count
    delayed = [0.0] * count
    weight = [0.0] * count
    for flow in flows:
        for index, rate in enumerate(flow.series.goodput_bps[:count]):
            read[index] += rate
            delay = flow.series.delay_mean_s[index]
            if delay is not None:
                delayed[index] += delay * rate
                weight[index] += rate
    return FlowSeries(
        time_s=first.series.time_s,
        goodput_bps=read,
        delay_mean_s=[total / rate if rate else None for total, rate in zip(delayed, weight, strict=True)],
        streams=[],
        delay_cdf_s=_delay_cdf(flows),
    )
