"""How flows share the links that limit them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from experiments.model.results import Bottleneck, FlowResult, RunResult

SATURATED = 0.9
"""A link of at least this utilisation limits who uses it."""


def jain_index(rates: Sequence[float]) -> float:
    """Return Jain's fairness index: 1 where all have the same, 1/n where one of n has everything.

    R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness and discrimination (DEC-TR-301, 1984).
    """
    squares = math.fsum(rate * rate for rate in rates)
    return math.fsum(rates) ** 2 / (len(rates) * squares) if squares else 1.0


def bottlenecks(run: RunResult) -> list[Bottleneck]:
    """Return the saturated links that several flows share, with each flow's part of what these carried."""
    found = []
    for link in run.links:
        if (link.utilisation or 0.0) < SATURATED:
            continue
        tail, head = link.link.split("->")
        hop = (tail, head)
        rates = {flow.flow: _rate_over(flow, hop) for flow in run.flows}
        using = {name: rate for name, rate in rates.items() if rate is not None}
        total = math.fsum(using.values())
        if len(using) > 1 and total:
            shares = {name: rate / total for name, rate in using.items()}
            found.append(Bottleneck(link=link.link, shares=shares, jain_index=jain_index([*using.values()])))
    return found


def _rate_over(flow: FlowResult, hop: tuple[str, str]) -> float | None:
    """Return what a flow sent over a link; None where none of its paths has it."""
    if not any(hop in itertools.pairwise(path.path) for path in flow.allocated):
        return None
    streams = [each for each in flow.series.streams if each.path and each.rate_bps]
    if not streams:
        return flow.goodput_bps
    return math.fsum(
        math.fsum(each.rate_bps) / len(each.rate_bps)
        for each in streams
        if hop in itertools.pairwise(each.path or [])
    )
