"""Runs what was drawn on two engines, and says where they differ by more than they may."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments import protocols, runner
from experiments.model.events import Event
from experiments.model.results import FlowResult, RunResult

from .draw import CASE, Drawn

ENGINES = ("virtual", "sim")
GOODPUT_TOLERANCE, DELAY_TOLERANCE = 0.02, 0.10
BUSY = 0.9
"""A link that is busy for more of the time saturates."""
FEW_PACKETS, FEW_SPLIT_PACKETS = 50, 1000
"""Of fewer, chance decides on the mean delay: which packets met others on a link, and, where the paths of
packets are drawn, which took which."""
FEW_ANSWERS = 100
"""Of fewer, the sizes of those that came after the end decide on the mean time."""


@dataclass(frozen=True)
class Pair:
    """A flow's figures on both engines, the kernel's first.

    `is_told` is whether its mean delay says something of the network, and not of a full send buffer or of a
    few packets; `cut` the share of the kernel's goodput that the end of the measurement may have come
    before or after: a packet, or the answers that were under way.
    """

    flow: str
    is_told: bool
    cut: float
    goodputs_bps: tuple[float, float]
    delays_s: tuple[float | None, float | None]
    completions_s: tuple[float | None, float | None]
    """Completion time of a file, in each engine."""
    last_frame_s: float = 0.0
    """What a frame takes on the slowest of several streams, which may have a file's last one or not."""
    answers_s: tuple[float | None, float | None] = (None, None)
    """Mean time to an answer, of many."""

    def problems(self) -> list[str]:
        """Return a sentence for each figure that differs by more than it may."""
        named = (
            ("goodput", "Mbit/s", 1e-6, max(GOODPUT_TOLERANCE, self.cut), self.goodputs_bps),
            ("file", "s", 1.0, max(GOODPUT_TOLERANCE, self._last_frame), self.completions_s),
            ("mean time to an answer", "ms", 1e3, DELAY_TOLERANCE, self.answers_s),
            ("mean delay", "ms", 1e3, DELAY_TOLERANCE if self.is_told else float("inf"), self.delays_s),
        )
        return [
            f"flow {self.flow}: {name} {_figure(ours, scale)} {unit} simulated, "
            f"{_figure(kernel, scale)} by the kernel"
            for name, unit, scale, tolerance, (kernel, ours) in named
            if not _alike(kernel, ours, tolerance)
        ]

    @property
    def _last_frame(self) -> float:
        """Share of the kernel's time of a file that one frame of the slowest stream takes."""
        return self.last_frame_s / (self.completions_s[0] or float("inf"))

    def __str__(self) -> str:
        goodputs, delays = (
            " ".join(_figure(value, scale) for value in values)
            for values, scale in ((self.goodputs_bps, 1e-6), (self.delays_s, 1e3))
        )
        return f"{self.flow}: {goodputs} Mbit/s, {delays} ms"


@dataclass(frozen=True)
class Outcome:
    """What became of a draw on both engines; `failures` are of runs that left no valid result.

    `apart` says why chance may tell the engines apart: a link is full or drops packets, or TCP sends again
    what was not lost, as with packets that overtake each other.
    """

    drawn: Drawn
    pairs: tuple[Pair, ...]
    apart: Literal["saturates", "resends"] | None
    failures: tuple[str, ...]

    @property
    def problems(self) -> list[str]:
        """What is wrong, as sentences: where chance tells the engines apart, failures alone."""
        differ = [] if self.apart else [text for pair in self.pairs for text in pair.problems()]
        return [*self.failures, *differ]


def run(drawn: Drawn, out: Path) -> Outcome:
    """Run a draw on both engines.

    Args:
        drawn: what to run.
        out: a folder that is empty or not there.

    Raises:
        ExperimentError: an engine refuses the draw.
    """
    results: list[RunResult] = []
    failures: list[str] = []
    for engine in ENGINES:
        outcome = runner.run(drawn.job(engine, out=out / engine, parallel=1), _ignore)
        failures += [f"{engine}: {reason}" for reason in outcome.failures]
        failures += [f"{engine}: {why}" for run in outcome.results.runs for why in run.why_invalid]
        results += outcome.results.runs
    if len(results) < len(ENGINES):
        return Outcome(drawn, (), None, tuple(failures))
    flows = zip(*(result.flows for result in results), strict=True)
    pairs = tuple(_pair(drawn, *pair) for pair in flows)
    return Outcome(drawn, pairs, _apart(results), tuple(failures))


def _ignore(event: Event) -> None:
    """Tell nobody how a run goes."""


def _pair(drawn: Drawn, kernel: FlowResult, ours: FlowResult) -> Pair:
    # A file that the connection takes as fast as it can waits for room in the send buffer, which a source
    # looks for now and then: its delay is that of a full buffer.
    flow = drawn.scenario.case(CASE).flows[kernel.flow]
    waits = flow.workload.kind == "bulk" and not protocols.get(drawn.protocol).writes_at_assigned_rate
    measured_bytes = kernel.goodput_bps * drawn.scenario.duration_s / 8
    packets = measured_bytes / drawn.scenario.packet_bytes
    is_split = drawn.protocol == "ppfs" and len(kernel.allocated) > 1
    delays = [flow.delay_s.mean if flow.delay_s else None for flow in (kernel, ours)]
    # The kernel's runs go on until everything has arrived, simulations end with the measurement.
    left_s = drawn.scenario.duration_s - flow.start_s
    done_s = [
        time_s if (time_s or 0.0) < left_s else None for time_s in (kernel.completion_s, ours.completion_s)
    ]
    cut_bytes = max(drawn.scenario.packet_bytes, *(_under_way_bytes(drawn, each) for each in (kernel, ours)))
    answers_s = [each.fct_s.mean if each.fct_s else None for each in (kernel, ours)]
    rates_bps = [path.rate_bps for path in kernel.allocated if path.rate_bps]
    answered = min(each.transfers.completed if each.transfers else 0 for each in (kernel, ours))
    return Pair(
        flow=kernel.flow,
        cut=min(1.0, cut_bytes / measured_bytes) if measured_bytes else 1.0,
        is_told=not waits and packets >= (FEW_SPLIT_PACKETS if is_split else FEW_PACKETS),
        goodputs_bps=(kernel.goodput_bps, ours.goodput_bps),
        delays_s=(delays[0], delays[1]),
        completions_s=(done_s[0], done_s[1]),
        last_frame_s=drawn.scenario.packet_bytes * 8 / min(rates_bps) if len(rates_bps) > 1 else 0.0,
        answers_s=(answers_s[0], answers_s[1]) if answered >= FEW_ANSWERS else (None, None),
    )


def _under_way_bytes(drawn: Drawn, flow: FlowResult) -> float:
    """Return the bytes of answers that had not arrived when the measurement ended; 0 without requests."""
    if flow.workload_kind != "requests":
        return 0.0
    return flow.bytes_written - flow.goodput_bps * drawn.scenario.duration_s / 8


def _apart(results: list[RunResult]) -> Literal["saturates", "resends"] | None:
    links = [link for run in results for link in run.links]
    if any((link.utilisation or 0.0) > BUSY or link.packets_dropped for link in links):
        return "saturates"
    if any(flow.ticks_skipped for run in results for flow in run.flows):
        return "saturates"
    return "resends" if any(map(_resends, results)) else None


def _resends(run: RunResult) -> bool:
    hosts = (counters.get("TcpRetransSegs", 0) for counters in run.evidence.hosts.values())
    connections = (state for flow in run.evidence.flows.values() for state in flow.connections)
    return any(hosts) or any(state.counters.get("retransmits", 0) for state in connections)


def _alike(kernel: float | None, ours: float | None, tolerance: float) -> bool:
    if kernel is None or ours is None:
        return kernel is ours
    return abs(ours - kernel) <= tolerance * abs(kernel)


def _figure(value: float | None, scale: float) -> str:
    return "-" if value is None else f"{value * scale:.3f}"
