"""What a stream is said to have sent is what its path can have carried, not what was written to it."""

from __future__ import annotations

from itertools import accumulate, pairwise

from experiments.model.results import Results, RunResult
from topologies.model import Network
from topologies.second_interfaces import SecondLink, with_second_interfaces

ROUND_BYTES = 10_000
"""Acknowledgements that come together, and samples beside an interval's edge."""


def check_streams(results: Results) -> None:
    """Check the streams of each run of a document, whose flows start within the measurement."""
    second = {host: SecondLink(**link) for host, link in results.settings["second_links"].items()}
    network = with_second_interfaces(Network.model_validate(results.network), second)
    for run in results.runs:
        check_run(run, network)


def check_run(run: RunResult, network: Network) -> None:
    """Check that no stream has sent more at any time than its path's narrowest link has carried by then."""
    capacities_bps = {(arc.tail, arc.head): arc.rate_bps for arc in network.arcs()}
    assert any(stream.rate_bps for flow in run.flows for stream in flow.series.streams), run.protocol
    for flow in run.flows:
        times_s = flow.series.time_s
        lengths_s = [end_s - begin_s for begin_s, end_s in pairwise([0.0, *times_s])]
        for stream in flow.series.streams:
            narrowest_bps = min(capacities_bps[hop] for hop in pairwise(stream.path or ()))
            sent_bits = accumulate(map(float.__mul__, stream.rate_bps, lengths_s))
            for time_s, bits in zip(times_s, sent_bits, strict=True):
                most_bits = narrowest_bps * time_s + 8 * ROUND_BYTES
                assert bits <= most_bits, (run.protocol, flow.flow, stream.path, time_s)
