"""The results document, version 2: what every engine writes and every report reads.

Rates are bit/s, times seconds, missing values None (never 0). Goodput and delay are the paper's (section
III-A): application bytes received per second, and the time from the sending application's write to the
receiving application's in-order read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from experiments.model.evidence import Evidence

EngineName: TypeAlias = str
"""One of `experiments.engines.ENGINES` of the program that wrote the document."""


CONSTANT_RATE = "cbr"
"""The workload whose source asks for its rate all the time."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PathAllocation(_Model):
    """One path of a flow and the goodput allocated to it (None where the protocol allocates none)."""

    path: list[str]
    rate_bps: float | None


class DelayStatistics(_Model):
    """Delay in seconds over all bytes that were read in order, weighted by bytes."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class TransferCounts(_Model):
    """Files, or requests made during the measurement, and how many of them were completed."""

    started: int
    completed: int


class CompletionTimes(DelayStatistics):
    """Seconds from when a transfer was wanted to the in-order read of its last byte, each counting once."""

    quantiles: list[float]
    """The quantiles 0, 0.01, ..., 1 (101 values)."""


class StreamSeries(_Model):
    """What one stream (one path) brought to the receiver, each byte once, as a mean rate of each interval.

    Of a flow that a switch splits: what it sent along the path.
    """

    source_port: int | None
    path: list[str] | None
    rate_bps: list[float]
    cwnd_bytes: list[float | None] = Field(default_factory=list)
    """Its congestion window at the end of each interval; empty where it has no connection of its own."""
    rtt_s: list[float | None] = Field(default_factory=list)
    """Likewise the smoothed round-trip time; None before it is measured."""


class FlowSeries(_Model):
    """Time series of a flow. `time_s` holds the end of each interval, from the start of the measurement."""

    time_s: list[float]
    goodput_bps: list[float]
    delay_mean_s: list[float | None]
    streams: list[StreamSeries]
    delay_cdf_s: list[float]
    """The delay's quantiles 0, 0.01, ..., 1 (101 values); empty where nothing arrived."""


class FlowResult(_Model):
    """What one flow asked for, was given and got."""

    flow: str
    src: str
    dst: str
    requested_bps: float
    allocated: list[PathAllocation]
    goodput_bps: float
    delay_s: DelayStatistics | None
    out_of_order_ratio: float | None
    """Share of the frames that arrived before an earlier one; None where it can't be seen."""
    reorder_buffer_max_bytes: int | None
    bytes_written: int
    bytes_read: int
    bytes_wrong: int
    """Bytes that differ from what was written; anything but 0 makes the run fail."""
    ticks_skipped: int
    """Constant-bit-rate ticks that found the send buffer full (the paper's sources skip them)."""
    congestion_control: str | None
    """Read back from the sockets, not what was asked for."""
    series: FlowSeries
    workload: dict[str, Any] | None = None
    """As the scenario has it; None stands for a constant bit rate."""
    group: str | None = None
    """Flows of one group are reported together."""
    protocol: str | None = None
    """The flow's own, where it has another than the run's."""
    active_goodput_bps: float | None = None
    """Goodput over the on periods of on/off, or from start to last byte of bulk; None for others."""
    transfers: TransferCounts | None = None
    """Files or requests; None where there are none."""
    completion_s: float | None = None
    """Time of bulk from the flow's start to the read of the last byte; None if that was not read in time."""
    fct_s: CompletionTimes | None = None
    """Flow completion times of requests; None where none was completed."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """Metrics beside those above, of extensions and of workloads, by name with unit."""

    @property
    def workload_kind(self) -> str:
        """What was sent, as the scenario calls it."""
        return CONSTANT_RATE if self.workload is None else str(self.workload["kind"])


class LinkSeries(_Model):
    """Utilisation of one direction of a link over time (1.0 = its whole rate)."""

    time_s: list[float]
    utilisation: list[float]


class LinkResult(_Model):
    """One direction of a link over the measurement."""

    link: str
    """`tail->head`, as `S0->S4`."""
    capacity_bps: float
    utilisation: float | None
    packets_dropped: int | None
    lateness_mean_us: float | None
    lateness_p99_us: float | None
    lateness_max_us: float | None
    series: LinkSeries | None = None


class ProgramTimes(_Model):
    """What a program that packets pass (its busiest thread) got of a processor during the measurement."""

    program: str
    ran: float
    """Share of the time that it ran."""
    waited: float
    """Share of the time that it could run and waited for a processor."""
    wait_mean_us: float
    """Mean from when it could run to when it did."""


class LinkChange(_Model):
    """What became of a link during a run, in both directions."""

    time_s: float
    """From the start of the measurement; below 0 before it."""
    link: str
    up: bool | None = None
    """Cut (False) or restored (True); None: neither."""
    silent: bool = False
    """Cut without the ends' carriers, so that only missing packets tell."""
    settings: dict[str, float | None] = Field(default_factory=dict)
    """New values of `rate_bps`, `delay_us`, `loss`, `jitter_us`, `queue_packets` or `queue_bytes`."""


class PathChange(_Model):
    """The paths that a flow was seen to have from a time on, other than before."""

    time_s: float
    """As of `LinkChange`, of the sample that saw it."""
    flow: str
    paths: list[PathAllocation]


class Bottleneck(_Model):
    """A link, `tail->head`, that was full and that several flows used."""

    link: str
    shares: dict[str, float]
    """Each flow's part of the goodput that it carried."""
    jain_index: float
    """Jain's fairness index of these parts: 1 where all have the same."""


class CommandResult(_Model):
    """One time that a program of the scenario ran; times are from the start of the measurement."""

    program: str
    host: str
    server: bool
    started_s: float
    ended_s: float
    exit_status: int | None
    """Negative where a signal ended it; None where the run did, as it asked for or with the measurement."""
    output: str
    """The end of its standard output."""
    errors: str
    """Likewise of its standard error."""
    bytes_sent: int
    """What the links of its host have carried from there meanwhile, headers and other traffic included."""
    bytes_received: int


class RunResult(_Model):
    """One protocol on one case of the scenario, with one seed."""

    protocol: str
    case: str
    seed: int
    duration_s: float
    started_at: str | None
    """UTC, ISO 8601; None where time is simulated, since the same seed gives the same bytes."""
    valid: bool
    why_invalid: list[str]
    earlier_attempts: list[list[str]] = Field(default_factory=list)
    """For each invalid attempt that was made before this one, why it was not valid."""
    host_cpu_busy: float | None
    """Mean share of the machine's cores that was busy during the measurement."""
    programs: list[ProgramTimes] = Field(default_factory=list)
    """Of sources, sinks and switches; empty where time is not the machine's."""
    sysctls: dict[str, str]
    """Settings of the hosts' network namespaces, read back."""
    flows: list[FlowResult]
    links: list[LinkResult]
    digest: str | None = None
    """Digest of every packet on every link and when it left, the same for the same seed under any load. None
    where time is real or packets are not seen."""
    charged_s: dict[str, float] | None = None
    """In virtual time, what a wake-up of a source or sink takes, and the planning of a request by the
    controller; all else takes nothing. None where programs take the time that they take."""
    environment: int = Field(default=0, ge=0)
    """Where it was made. 0 is the document's `environment`, n the n-th of `other_environments`."""
    evidence: Evidence = Evidence()
    """What shows that the protocol did what its name says."""
    link_changes: list[LinkChange] = Field(default_factory=list)
    """In the order of time. The document's network, and `allocated` of flows, are as before the first one."""
    path_changes: list[PathChange] = Field(default_factory=list)
    """Likewise; empty where no link was changed."""
    bottlenecks: list[Bottleneck] = Field(default_factory=list)
    """Links that several flows shared at 90 % of their rate or more."""
    commands: list[CommandResult] = Field(default_factory=list)
    """What became of the scenario's programs, in the order in which they started."""


class SimulationCost(_Model):
    """What a simulated run took of the machine; all else of a run is the same wherever it is made."""

    protocol: str
    case: str
    seed: int
    events: int
    wall_s: float
    """Wall-clock time of the simulation alone, without the start of its process."""
    peak_rss_bytes: int
    """Memory of the run's process, the Python interpreter included."""


class OwnFile(_Model):
    """A file of the user's own that the runs executed."""

    kind: Literal["extension", "method"]
    name: str
    """An extension's file name; a method's file as the scenario names it."""
    path: str
    """Where it was."""
    sha256: str | None
    """SHA-256 of its content when the document was written; None if it could not be read then."""


class Environment(_Model):
    """Where and with what the results were made."""

    kernel: str
    machine: str
    cpus: int
    versions: dict[str, str]
    sysctls: dict[str, str]
    qdiscs: list[str]
    link_backend: str | None
    datapath: str | None
    git_revision: str | None
    host_load: list[float]
    """Load averages over 1, 5 and 15 minutes, before the first of its runs."""
    valid: bool
    why: list[str]
    """Why the results as a whole are not valid; empty if they are."""
    simulations: list[SimulationCost] = Field(default_factory=list)
    """Costs of the simulator's runs."""
    files: list[OwnFile] = Field(default_factory=list)
    """Extensions that were given as files, and those that hold methods of the simulator."""


class AskedRuns(_Model):
    """Which runs there were to be: each case of the settings with each of these."""

    protocols: list[str]
    seeds: list[int]


class Results(_Model):
    """The whole document."""

    format: Literal[2] = 2
    scenario: str
    """Name of the scenario file."""
    engine: EngineName
    variant: str | None
    overrides: dict[str, Any]
    settings: dict[str, Any]
    """The scenario as it was run (`experiments.model.scenario.Scenario`, dumped), with overrides and
    defaults, and the cases that were run alone."""
    asked: AskedRuns
    network: dict[str, Any]
    """The network as it was emulated (`topologies.Network`, dumped)."""
    environment: Environment
    """Environment of the first run, and of all runs unless others are named."""
    other_environments: list[Environment] = Field(default_factory=list)
    """Of runs that were made on another machine, or later with other versions (`RunResult.environment`)."""
    runs: list[RunResult]

    def to_json(self) -> str:
        """Return the document as JSON text, one trailing newline."""
        return json.dumps(self.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a results.json; pydantic.ValidationError names the place where it is none."""
        return cls.model_validate_json(path.read_text())
