"""The sources and sinks of one run.

Each host has a process for all flows that begin there, and one for those that end there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments import protocols
from experiments.analysis.logs import Log
from experiments.apps import config as apps
from experiments.apps.config import PORT, SinkConfig, SourceConfig, Timing
from experiments.engines.live.agent import Agent
from experiments.engines.live.child import Child, ChildFailed
from experiments.engines.live.forked import ForkedProgram
from experiments.model.plan import RunPlan
from experiments.protocols.base import FlowPlan
from switch.tcp import Controls
from topologies.mininet_builder import Emulation

START_TIMEOUT_S = 30.0
"""For a Python interpreter to come up on a busy machine, and for the handshakes after it."""
REPORT_TIMEOUT_S = 15.0
"""For the logs to be written, after the last byte."""


@dataclass
class Transfer:
    """One flow: what its ends were told, and what they reported."""

    flow: FlowPlan
    source: SourceConfig
    sink: SinkConfig
    start_ns: int = 0
    connected: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    received: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The flow's name."""
        return self.flow.name

    def writes(self) -> Log:
        """Return the log of the source."""
        with np.load(self.source.log) as arrays:
            return Log(arrays["offset"], arrays["time_ns"])

    def reads(self) -> Log:
        """Return the log of the sink."""
        with np.load(self.sink.log) as arrays:
            return Log(arrays["offset"], arrays["time_ns"])

    def requests(self) -> tuple[np.ndarray, np.ndarray]:
        """Return when each request was made (ns), and where in the stream its answer ends (bytes)."""
        with np.load(self.sink.log) as arrays:
            return arrays["asked_ns"], arrays["end_offset"]

    def stream_samples(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the source's samples: times (ns), and the bytes that each stream had carried by each."""
        with np.load(self.source.log) as arrays:
            return arrays["sample_time_ns"], arrays["stream_bytes"]

    def samples_by_port(self) -> dict[int, np.ndarray]:
        """Return the samples of each stream or subflow by its source port.

        A row has the time (ns), the port, and what `experiments.apps.stream_progress.StreamProgress` has.
        """
        with np.load(self.source.log) as arrays:
            rows = arrays["samples_by_port"]
        return {int(port): rows[rows[:, 1] == port] for port in np.unique(rows[:, 1])}


class Traffic:
    """Sources and sinks of a plan; a context manager that ends their processes.

    `controller` is the address of its gRPC service as the hosts reach it; `controls` are the congestion
    controls that the kernel does not have by itself; each flow starts up to `start_jitter_s` later, drawn by
    the run's seed.
    """

    def __init__(
        self,
        plan: RunPlan,
        emulation: Emulation,
        out: Path,
        controller: str,
        timing: Timing,
        controls: Controls,
        start_jitter_s: float = 0.0,
    ) -> None:
        self._plan = plan
        self._timing = timing
        self._controls = controls
        self._start_jitter_s = start_jitter_s
        self._emulation = emulation
        self._out = out
        self._controller = controller
        self._children: list[Child] = []
        self._sources: dict[str, Child] = {}
        self._sinks: dict[str, Child] = {}
        self._transfers: list[Transfer] = []
        self._rates: Mapping[str, float] = {}

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.stop()

    def start_programs(self) -> None:
        """Start the processes of all sinks and sources, which the hosts' settings have to be made for before.

        They come up beside whatever else is waited for; nothing is sent before `connect`.
        """
        transfers = [self._transfer(number, name) for number, name in enumerate(self._plan.case.flows)]
        self._transfers = transfers
        for host in sorted({transfer.flow.flow.dst for transfer in transfers}):
            self._sinks[host] = self._child(
                "sink", host, [t.sink for t in transfers if t.flow.flow.dst == host]
            )
        for host in sorted({transfer.flow.flow.src for transfer in transfers}):
            self._sources[host] = self._child(
                "source", host, [t.source for t in transfers if t.flow.flow.src == host]
            )

    def connect(self, agent: Agent) -> None:
        """Connect all flows, in the order of the file (ChildFailed: a process did not come up or connect)."""
        for sink in self._sinks.values():
            sink.expect("listening", self._patience_s)
        for transfer in self._transfers:
            told = agent.connecting(transfer.flow, transfer.source.port)
            source = self._sources[transfer.flow.flow.src]
            source.tell({"order": "connect", "flow": transfer.name, **told})
            transfer.connected = source.expect("connected", self._patience_s)
        for sink in self._sinks.values():
            sink.expect("accepted", START_TIMEOUT_S)
        self._rates = agent.connected()

    def start(self, begin_ns: int, stop_ns: int) -> None:
        """Tell the sources to send from `begin_ns`, later by stagger and own start, until `stop_ns`."""
        for number, transfer in enumerate(self._transfers):
            late_s = number * self._plan.scenario.stagger_s + transfer.flow.flow.start_s
            late_s += apps.start_jitter_s(self._start_jitter_s, transfer.flow.seed)
            transfer.start_ns = begin_ns + round(late_s * 1e9)
        orders = {
            transfer.name: {
                "start_ns": transfer.start_ns,
                "stop_ns": stop_ns,
                "rate_bps": self._rates.get(transfer.name),
            }
            for transfer in self._transfers
        }
        for end, children in (("src", self._sources), ("dst", self._sinks)):
            for host, child in children.items():
                flows = {t.name: orders[t.name] for t in self._transfers if getattr(t.flow.flow, end) == host}
                child.tell({"order": "start", "flows": flows})

    def programs(self) -> dict[str, int]:
        """Return the process ids of sources and sinks, by what a sentence calls them."""
        return {child.name[0].lower() + child.name[1:]: child.pid for child in self._children}

    def connections(self) -> Sequence[Transfer]:
        """Return the transfers, in the order of the scenario's flows."""
        return self._transfers

    def sampled(self) -> list[dict[str, Any]]:
        """Return what the sources have told of their samples since the last call, without waiting."""
        return [sample for source in self._sources.values() for sample in source.sampled()]

    def check_alive(self) -> None:
        """Raise ChildFailed if a source or sink has ended."""
        for child in self._children:
            child.check_alive()

    def finish(self) -> list[Transfer]:
        """Wait until all is read; returns the transfers with reports (ChildFailed: one has no end)."""
        patience_s = self._plan.scenario.drain_s + REPORT_TIMEOUT_S
        sent = self._reports(self._sources, patience_s)
        for transfer in self._transfers:
            transfer.sent = sent[transfer.name]
            if not transfer.sent["drained"]:
                raise ChildFailed(
                    f"The receiver of flow {transfer.name} had not read everything "
                    f"{self._plan.scenario.drain_s:g} s after the last write; "
                    f"{protocols.get(transfer.source.protocol).drain_advice}"
                )
        received = self._reports(self._sinks, patience_s)
        for transfer in self._transfers:
            transfer.received = received[transfer.name]
        return self._transfers

    @staticmethod
    def _reports(children: Mapping[str, Child], patience_s: float) -> dict[str, dict[str, Any]]:
        """Return what each flow's ends report, by the flow's name."""
        reports: dict[str, dict[str, Any]] = {}
        for child in children.values():
            reports.update(child.expect("done", patience_s)["flows"])
        return reports

    @property
    def _patience_s(self) -> float:
        """Time for processes to come up beside each other."""
        return START_TIMEOUT_S + len(self._children)

    def _transfer(self, number: int, name: str) -> Transfer:
        scenario, flow = self._plan.scenario, self._plan.case.flows[name]
        spec = protocols.get(self._plan.protocol_of(name))
        seed = apps.flow_seed(self._plan.seed, number)
        plan = FlowPlan(name, scenario, self._plan.case, flow, seed, spec.name, self._controller)
        common: dict[str, Any] = {
            "flow": name,
            "number": number,
            "run_seed": self._plan.seed,
            "host": self._emulation.host_ip(flow.dst),
            "port": PORT + number,
            "protocol": spec.name,
            "connection": spec.connection(plan),
            "workload": flow.workload,
            "packet_bytes": scenario.packet_bytes,
            "overhead_bytes": scenario.overhead_bytes,
            "header_bytes": spec.header_bytes,
            "sockets": spec.sockets(scenario, self._controls.registered(self._plan.kernel_control_of(name))),
            "timing": self._timing,
        }
        source = SourceConfig(
            **common,
            log=str(self._out / f"source-{name}.npz"),
            rate_bps=flow.requested_for(spec.name),
            sample_s=scenario.live.sample_s,
            drain_s=scenario.drain_s,
        )
        sink = SinkConfig(**common, log=str(self._out / f"sink-{name}.npz"))
        return Transfer(plan, source, sink)

    def _child(self, kind: str, host: str, configs: Sequence[SourceConfig | SinkConfig]) -> Child:
        config_path, log_path = self._out / f"{kind}-{host}.json", self._out / f"{kind}-{host}.log"
        apps.save(config_path, configs)
        function, host_pid = f"experiments.apps.{kind}:serve", self._emulation.host(host).pid
        process = ForkedProgram(
            f"{kind}-{host}", function, config_path, log=log_path, piped=True, host_pid=host_pid
        )
        child = Child(f"The {kind} in {host}", process, log_path)
        self._children.append(child)
        return child
