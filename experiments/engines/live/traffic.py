"""The sources and sinks of one run, each a process in its host."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from experiments import protocols
from experiments.apps.config import PORT, Connection, SinkConfig, SocketSettings, SourceConfig, to_json
from experiments.engines.base import RunPlan
from experiments.engines.live.agents.base import Agent
from experiments.engines.live.child import Child, ChildFailed
from experiments.metrics import Log
from experiments.protocols.base import FlowPlan
from experiments.protocols.mptcp import Mptcp
from experiments.scenario import Scenario
from topologies.mininet_builder import Emulation

START_TIMEOUT_S = 30.0
"""For a Python interpreter to come up on a busy machine, and for the handshakes after it."""
REPORT_TIMEOUT_S = 15.0
"""For the logs to be written, after the last byte."""
FLOW_SEED_STRIDE = 1_000_003
"""Apart from each other, so that no two flows of nearby seeds share a payload or a scheduler's draws."""

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (of a host in a namespace of its own)


@dataclass
class Transfer:
    """One flow: its processes, and what they reported."""

    flow: FlowPlan
    port: int
    source: Child
    sink: Child
    source_log: Path
    sink_log: Path
    connected: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    received: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The flow's name."""
        return self.flow.name

    def writes(self) -> Log:
        """Return the log of the source."""
        with np.load(self.source_log) as arrays:
            return Log(arrays["offset"], arrays["time_ns"])

    def reads(self) -> Log:
        """Return the log of the sink."""
        with np.load(self.sink_log) as arrays:
            return Log(arrays["offset"], arrays["time_ns"])

    def stream_samples(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the source's samples: times (ns), and one row of bytes per stream for each of them."""
        with np.load(self.source_log) as arrays:
            return arrays["sample_time_ns"], arrays["stream_bytes"]


class Traffic:
    """Sources and sinks of a plan; a context manager that ends their processes.

    Args:
        plan: what is run.
        emulation: the running network.
        out: folder for their logs.
        controller: address and port of the controller's gRPC service as the hosts reach it.
    """

    def __init__(self, plan: RunPlan, emulation: Emulation, out: Path, controller: str) -> None:
        self._plan = plan
        self._emulation = emulation
        self._out = out
        self._controller = controller
        self._children: list[Child] = []
        self._transfers: list[Transfer] = []
        self._rates: Mapping[str, float] = {}

    def __enter__(self) -> Traffic:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.stop()

    def connect(self, agent: Agent) -> None:
        """Start all sinks, then all sources; the flows ask for their paths in the order of the file.

        Args:
            agent: of the protocol.

        Raises:
            ChildFailed: a process did not come up or could not connect.
        """
        for number, name in enumerate(self._plan.case.flows):
            self._transfers.append(self._start(number, name))
        for transfer in self._transfers:
            transfer.sink.expect("listening", START_TIMEOUT_S)
        for transfer in self._transfers:
            told = agent.connecting(transfer.flow, transfer.port)
            transfer.source.tell({"order": "connect", **told})
            transfer.connected = transfer.source.expect("connected", START_TIMEOUT_S)
        self._rates = agent.connected()

    def start(self, begin_ns: int, stop_ns: int) -> None:
        """Tell the sources to send from `begin_ns`, later by stagger and own start, until `stop_ns`."""
        stagger_s = self._plan.scenario.stagger_s
        for number, transfer in enumerate(self._transfers):
            late_s = number * stagger_s + self._plan.case.flows[transfer.name].start_s
            transfer.source.tell(
                {
                    "order": "send",
                    "start_ns": begin_ns + round(late_s * 1e9),
                    "stop_ns": stop_ns,
                    "rate_bps": self._rates.get(transfer.name),
                }
            )

    def check_alive(self) -> None:
        """Raise ChildFailed if a source or sink has ended."""
        for child in self._children:
            child.check_alive()

    def finish(self) -> list[Transfer]:
        """Wait until all is read, and return the transfers with their reports and logs.

        Raises:
            ChildFailed: a transfer did not end in time, or an end of it failed.
        """
        patience_s = self._plan.scenario.drain_s + REPORT_TIMEOUT_S
        for transfer in self._transfers:
            transfer.sent = transfer.source.expect("done", patience_s)
            if not transfer.sent["drained"]:
                raise ChildFailed(
                    f"The receiver of flow {transfer.name} had not read everything "
                    f"{self._plan.scenario.drain_s:g} s after the last write; {self._advice()}"
                )
            transfer.received = transfer.sink.expect("done", patience_s)
        return self._transfers

    def _advice(self) -> str:
        """Return what may help a transfer that does not come to its end."""
        if isinstance(protocols.get(self._plan.protocol), Mptcp):
            return (
                "allow more time (--set drain_s=60), or more memory if the connection came to a stand "
                "(--set mptcp.receive_buffer_bytes=1048576; docs/tcp.md says why)"
            )
        return "allow more: --set drain_s=60"

    def _start(self, number: int, name: str) -> Transfer:
        flow = self._plan.case.flows[name]
        scenario = self._plan.scenario
        seed = self._plan.seed * FLOW_SEED_STRIDE + number
        source_log, sink_log = self._out / f"source-{name}.npz", self._out / f"sink-{name}.npz"
        port = PORT + number
        flow_plan = FlowPlan(name, scenario, self._plan.case, flow, seed, self._controller)
        protocol = protocols.get(self._plan.protocol)
        connection = protocol.connection(flow_plan)
        sockets = _sockets(scenario, connection)
        source = SourceConfig(
            flow=name,
            host=self._emulation.host_ip(flow.dst),
            port=port,
            rate_bps=flow.requested_for(self._plan.protocol),
            packet_bytes=scenario.packet_bytes,
            overhead_bytes=scenario.overhead_bytes,
            header_bytes=protocol.header_bytes,
            connection=connection,
            sockets=sockets,
            seed=seed,
            sample_s=scenario.live.sample_s,
            drain_s=scenario.drain_s,
            log=str(source_log),
        )
        sink = SinkConfig(
            flow=name,
            host=ANY_ADDRESS if connection.any_address else source.host,
            port=port,
            kernel=connection.kernel,
            sockets=sockets,
            seed=seed,
            log=str(sink_log),
        )
        return Transfer(
            flow=flow_plan,
            port=port,
            sink=self._child(f"The sink of flow {name}", flow.dst, "cbr_sink", sink, f"sink-{name}"),
            source=self._child(
                f"The source of flow {name}", flow.src, "cbr_source", source, f"source-{name}"
            ),
            source_log=source_log,
            sink_log=sink_log,
        )

    def _child(
        self, title: str, host: str, module: str, config: SourceConfig | SinkConfig, log: str
    ) -> Child:
        log_path = self._out / f"{log}.log"
        with log_path.open("wb") as log_file:
            process = self._emulation.popen(
                host,
                [sys.executable, "-m", f"experiments.apps.{module}", to_json(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
            )
        child = Child(title, process, log_path)
        self._children.append(child)
        return child


def _sockets(scenario: Scenario, connection: Connection) -> SocketSettings:
    """Return what a connection's sockets are to have, at both ends."""
    tcp = scenario.tcp
    receive = (
        scenario.mptcp_receive_buffer_bytes if connection.kernel == "mptcp" else tcp.receive_buffer_bytes
    )
    return SocketSettings(tcp.congestion_control, tcp.send_buffer_bytes, receive)
