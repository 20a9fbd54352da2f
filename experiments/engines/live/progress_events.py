"""Progress events of the live engine: rates as they are sampled, and validity so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.analysis.logs import NANOSECONDS, Window
from experiments.analysis.validity import CpuMeter, why_invalid
from experiments.engines.live.agent import Agent
from experiments.engines.live.program_times import ProgramMeter
from experiments.engines.live.sampling import LinkSampler
from experiments.engines.live.traffic import Traffic
from experiments.model.events import (
    ConnectedFlow,
    ConnectedStream,
    FlowsConnected,
    RatesMeasured,
    Report,
    ValidityMeasured,
)
from experiments.model.plan import RunPlan
from experiments.model.results import ProgramTimes

VALIDITY_INTERVAL_S = 1.0


class ProgressEvents:
    """Makes events of what the engine has sampled anyway: nothing is measured for it but the processor.

    `busy` says whether the processor's load matters, as it does where programs take time.
    """

    def __init__(
        self,
        plan: RunPlan,
        traffic: Traffic,
        sampler: LinkSampler,
        agent: Agent,
        window: Window,
        report: Report,
        *,
        busy: bool,
    ) -> None:
        self._plan = plan
        self._traffic = traffic
        self._sampler = sampler
        self._agent = agent
        self._window = window
        self._report = report
        self._busy = busy
        self._meter: CpuMeter | None = None
        self._next_validity_ns = window.start_ns
        self._before: dict[str, tuple[int, list[int]]] = {}
        self._sent_by_port: dict[str, dict[int, int]] = {}
        for transfer in traffic.connections():
            planned = agent.streams(transfer.name) or []
            self._sent_by_port[transfer.name] = {each.source_port or 0: 0 for each in planned}

    def connected(self) -> None:
        """Tell which flows there are, and their streams."""
        flows = [
            ConnectedFlow(
                flow=transfer.name,
                src=transfer.flow.flow.src,
                dst=transfer.flow.flow.dst,
                requested_bps=self._plan.requested_bps(transfer.name),
                streams=self._streams(transfer.name, transfer.connected["streams"]),
            )
            for transfer in self._traffic.connections()
        ]
        self._report(FlowsConnected(flows=flows))

    def sampled(self, now_ns: int, programs: ProgramMeter | None) -> None:
        """Tell what was measured since the last call; links and agent have been sampled just before.

        `programs` are those since the start of the measurement, None before it.
        """
        seconds = (now_ns - self._window.start_ns) * NANOSECONDS
        streams_bps = self._streams_bps(now_ns)
        links = self._sampler.latest_utilisation(self._plan.network)
        self._report(RatesMeasured(seconds=seconds, links=links, streams_bps=streams_bps))
        if now_ns >= self._next_validity_ns:
            self._next_validity_ns = now_ns + round(VALIDITY_INTERVAL_S / NANOSECONDS)
            times = programs.read(seconds) if programs is not None and seconds > 0 else []
            self._report(self._validity(seconds, times))

    def _streams(self, flow: str, connected: list[dict[str, Any]]) -> list[ConnectedStream]:
        planned = self._agent.streams(flow)
        if planned is None:
            return [ConnectedStream(path=each["path"], rate_bps=each["rate_bps"]) for each in connected]
        return [ConnectedStream(path=each.path, rate_bps=each.rate_bps) for each in planned]

    def _streams_bps(self, now_ns: int) -> dict[str, list[float]]:
        counted: dict[str, tuple[int, list[int]]] = {}
        for sample in self._traffic.sampled():
            counted[sample["flow"]] = sample["time_ns"], self._counted(sample)
        for transfer in self._traffic.connections():
            carried = self._agent.counted_bytes(transfer.name)
            if carried is not None:
                counted[transfer.name] = now_ns, carried
        rates = {flow: self._rates(flow, *latest) for flow, latest in counted.items()}
        self._before.update(counted)
        return {flow: rate for flow, rate in rates.items() if rate}

    def _counted(self, sample: dict[str, Any]) -> list[int]:
        """Return the bytes of each stream, or of each subflow; one that is gone carries nothing more."""
        by_port = {int(port): count for port, count in sample["subflows"].items()}
        if not by_port:
            streams: list[int] = sample["streams"]
            return streams
        sent = self._sent_by_port.setdefault(sample["flow"], {})
        sent.update(by_port)
        return list(sent.values())

    def _rates(self, flow: str, time_ns: int, counted: list[int]) -> list[float]:
        """Return what was carried since the last sample; nothing where there is none to compare with."""
        before_ns, before = self._before.get(flow, (time_ns, counted))
        if time_ns == before_ns or len(before) != len(counted):
            return []
        seconds = (time_ns - before_ns) * NANOSECONDS
        return [max(0, now - then) * 8 / seconds for now, then in zip(counted, before, strict=True)]

    def _validity(self, seconds: float, programs: Sequence[ProgramTimes]) -> ValidityMeasured:
        busy: float | None = None
        if self._busy:
            self._meter = self._meter or CpuMeter()
            busy = self._meter.busy_so_far()
        links = self._sampler.lateness_so_far(self._plan.network)
        late = [link.lateness_max_us for link in links if link.lateness_max_us is not None]
        lost = self._sampler.machine_drops()
        problems = why_invalid(self._plan.scenario.live, busy, programs, links, lost)
        return ValidityMeasured(
            seconds=seconds, cpu_busy=busy, lateness_max_us=max(late, default=None), problems=problems
        )
