"""Scenarios as data: what is sent over which network, with which settings. Checked, never executed.

One file holds several named cases (`[cases.1]`, `[cases.2]`), which share the network and the settings and
differ in their flows. Nothing here knows an engine: live, virtual and simulated runs read the same
`Scenario`. Settings that only one engine has stand in a table named after it (`[live]`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from experiments.errors import ScenarioError, UnknownName, nearest
from experiments.model.dynamics import Event, LinkTrace
from experiments.model.programs import Program
from experiments.workloads import Cbr, Workload
from topologies import toml
from topologies.model import Network
from topologies.validation import requirement

SCENARIO_FOLDER = Path(__file__).parents[1] / "scenarios"
ETHERNET_BYTES = 14
IP_TCP_BYTES = 40
TIMESTAMP_OPTION_BYTES = 12
"""RFC 7323 section 3.2: 10 bytes, padded to 12."""

OBJECTIVES = ("even_split", "fair", "max_min", "max_throughput_min_delay", "min_max_utilisation")
"""Allocations that the controller computes; any other name stands for one that the flows give."""

SCHEDULERS = ("minrtt", "roundrobin", "blest", "ecf", "redundant", "linux")
CONGESTION_CONTROLS = ("reno", "cubic", "bbr")
COUPLED_CONTROLS = ("uncoupled", "lia", "olia", "balia", "wvegas", "fully_coupled")
RESPONSES = ("none", "dsack", "eifel", "frto", "door", "pr_r", "tcp_pr", "rack")
"""The simulator's methods by kind; beside them stand those of one's own (docs/own-methods.md)."""
KERNEL_RESPONSES: Mapping[str, Mapping[str, int]] = {
    "none": {"dsack": 0, "timestamps": 0, "frto": 0},
    "dsack": {"sack": 1, "dsack": 1, "timestamps": 0, "frto": 0},
    "eifel": {"dsack": 0, "timestamps": 1, "frto": 0},
    "frto": {"dsack": 0, "timestamps": 0, "frto": 2},
    "door": {"dsack": 0, "timestamps": 0, "frto": 0},
    "pr_r": {"dsack": 0, "timestamps": 0, "frto": 0},
}
"""Responses to reordering that kernels have too, each with its `net.ipv4.tcp_*`: Linux runs three at once."""
RESPONSE_CONTROLS = ("door", "pr_r")
"""Responses that are congestion controls to a kernel: Reno with another reduction."""
OWN = r"[^:]+:[A-Za-z_][A-Za-z0-9_]*"
"""`MODULE:NAME` or `FILE.py:NAME`."""


def _one_of(known: Sequence[str]) -> AfterValidator:
    """Return a check that a name is one of those known, or of a method of one's own."""

    def check(name: str) -> str:
        if name not in known and re.fullmatch(OWN, name) is None:
            raise ValueError(f"{name!r} is none of {', '.join(known)}, nor FILE.py:NAME of your own")
        return name

    return AfterValidator(check)


_PR_R = BeforeValidator(lambda name: "pr_r" if name == "prr" else name)
"""PR-R, which is also written without the line."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
NodeName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]
Rate = Annotated[float, Field(gt=0, le=1e13, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]
CongestionControl = Annotated[str, Field(pattern=rf"^([a-z0-9_]{{1,15}}|{OWN})$")]
BufferBytes = Annotated[int, Field(ge=4096, le=1 << 30)]
MIN_SAMPLE_S = 1e-3
START_JITTER_S, TICK_JITTER = 1e-3, 0.1
CONNECT_AHEAD_S = 1.0
DEFAULT = "default"
KINDS: Mapping[int | str, frozenset[str]] = {
    "sizes": frozenset({"fixed", "exponential", "web-search", "data-mining", "empirical"}),
}
"""Values of `kind` in the tables that are told apart by it."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GivenPath(_Model):
    """One path of a flow, written down in the scenario: nodes from host to host and its goodput."""

    path: tuple[NodeName, ...] = Field(min_length=3)
    rate_bps: Rate


class Flow(_Model):
    """What one connection carries from `src` to `dst`.

    `requested_bps` is goodput: a number, or a table by protocol with a `default` for those it does not name.
    It is what a controller is asked for, and the rate of constant-bit-rate sources while they are on.
    `given` holds named allocations written down instead of computed, each by protocol in the same way.
    `start_s` delays the flow's first byte after the start of the run. Flows of one `group` are reported
    together. `protocol` and `congestion_control` are the flow's own, whatever the run's are.
    """

    src: NodeName
    dst: NodeName
    requested_bps: Rate | dict[Name, Rate]
    workload: Workload = Cbr()
    start_s: Seconds = 0.0
    group: Name | None = None
    protocol: Name | None = None
    congestion_control: CongestionControl | None = None
    given: dict[Name, dict[Name, Annotated[tuple[GivenPath, ...], Field(min_length=1)]]] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _ends_agree(self) -> Flow:
        if self.src == self.dst:
            raise ValueError(f"src and dst are both {self.src}: a flow needs two hosts")
        if isinstance(self.requested_bps, dict) and DEFAULT not in self.requested_bps:
            raise ValueError("requested_bps by protocol needs a `default`")
        for name, by_protocol in self.given.items():
            if DEFAULT not in by_protocol:
                raise ValueError(f"given.{name} needs a `default` for the protocols it does not name")
            for protocol, paths in by_protocol.items():
                for path in (given.path for given in paths):
                    if (path[0], path[-1]) != (self.src, self.dst):
                        way = f"{'-'.join(path)} does not lead from {self.src} to {self.dst}"
                        raise ValueError(f"given.{name}.{protocol}: {way}")
        return self

    def requested_for(self, protocol: str) -> float:
        """Return the goodput in bit/s that this flow asks for with a protocol."""
        if isinstance(self.requested_bps, dict):
            return self.requested_bps.get(protocol, self.requested_bps[DEFAULT])
        return self.requested_bps

    def given_paths(self, allocation: str, protocol: str) -> tuple[GivenPath, ...]:
        """Return the paths of a given allocation, which the flow must have."""
        by_protocol = self.given[allocation]
        return by_protocol.get(protocol, by_protocol[DEFAULT])


class Demands(_Model):
    """A file with many flows (`experiments.model.demands`), relative to the scenario's folder.

    `requested_bps` is asked for by flows of which the file says their size alone.
    """

    file: str = Field(min_length=1)
    requested_bps: Rate | None = None


def _file_alone(value: object) -> object:
    return {"file": value} if isinstance(value, str) else value


class Case(_Model):
    """Flows that run together: those written down, and those of a file of demands.

    `allocation` is one of `OBJECTIVES` or a name under every flow's `given`.
    """

    description: str = ""
    allocation: str = "max_throughput_min_delay"
    flows: dict[Name, Flow] = Field(default_factory=dict)
    demands: Annotated[Demands | None, BeforeValidator(_file_alone)] = None

    @model_validator(mode="after")
    def _allocation_exists(self) -> Case:
        missing = [name for name, flow in self.flows.items() if self.allocation not in flow.given]
        if self.allocation not in OBJECTIVES and missing:
            known = sorted({*OBJECTIVES, *(name for flow in self.flows.values() for name in flow.given)})
            flows = f"flow {', '.join(missing)}"
            raise ValueError(
                f"allocation {self.allocation!r} is not given for {flows}; known: {', '.join(known)}"
            )
        return self


class Tcp(_Model):
    """TCP of the hosts. None leaves the kernel's default, which is recorded with every run all the same.

    `congestion_control` and the buffers are set on each socket and read back. `reordering` is the response to
    reordering and overrides other keys; `duplicate_threshold` is `net.ipv4.tcp_reordering`. The others are
    `net.ipv4.tcp_<key>` of the hosts' network namespaces, set before the first connection and read back.
    """

    congestion_control: CongestionControl = "reno"
    send_buffer_bytes: BufferBytes | None = None
    receive_buffer_bytes: BufferBytes | None = None
    sack: bool | None = None
    dsack: bool | None = None
    timestamps: bool | None = None
    window_scaling: bool | None = None
    recovery: int | None = Field(default=None, ge=0, le=7)
    reordering: Annotated[Literal["none", "dsack", "eifel", "frto", "door", "pr_r"], _PR_R] | None = None
    duplicate_threshold: int | None = Field(default=None, ge=1, le=300)
    early_retrans: int | None = Field(default=None, ge=0, le=4)
    frto: int | None = Field(default=None, ge=0, le=2)
    ecn: int | None = Field(default=None, ge=0, le=3)
    no_metrics_save: bool | None = None
    slow_start_after_idle: bool | None = None
    autocorking: bool | None = None

    @model_validator(mode="after")
    def _response_has_its_control(self) -> Tcp:
        if self.reordering in RESPONSE_CONTROLS and self.congestion_control != "reno":
            reason = "is a response of Reno: leave congestion_control out, or set it to reno"
            raise ValueError(f"reordering = {self.reordering!r} {reason}")
        return self

    @property
    def response(self) -> Mapping[str, int]:
        """What `reordering` sets of the other keys, whatever these say."""
        return {} if self.reordering is None else KERNEL_RESPONSES[self.reordering]

    @property
    def kernel_control(self) -> str:
        """The congestion control that a kernel's sockets are told."""
        return self.reordering if self.reordering in RESPONSE_CONTROLS else self.congestion_control

    @property
    def has_timestamps(self) -> bool:
        """Whether segments carry timestamps (RFC 7323)."""
        return bool(self.response.get("timestamps", self.timestamps is not False))

    def sysctls(self) -> dict[str, str]:
        """Return the sysctls that are asked for, by full name, as the text the kernel takes."""
        apart = {
            "congestion_control",
            "send_buffer_bytes",
            "receive_buffer_bytes",
            "reordering",
            "duplicate_threshold",
        }
        asked = self.model_dump(exclude=apart, exclude_none=True)
        asked |= self.response
        if self.duplicate_threshold is not None:
            asked["reordering"] = self.duplicate_threshold
        return {f"net.ipv4.tcp_{name}": str(int(value)) for name, value in asked.items()}


class Live(_Model):
    """Settings of the live engine alone.

    A run is marked invalid when the machine could not keep up with it: more than `cpu_busy_max` of all cores
    busy, sources, sinks or switches that waited too long for a processor, or wires that released packets too
    late. The bounds come from what is measured: the shortest link of the butterfly delays by 1 ms, and Linux
    retransmits after 200 ms at the least (RFC 6298 has 1 s). The packets of the links in `capture` are kept,
    in virtual time too.
    """

    link_backend: Literal["auto", "netem", "emulator"] = "auto"
    capture: tuple[str, ...] = ()
    sample_s: float = Field(default=0.25, gt=0.01, le=10)
    cpu_busy_max: float = Field(default=0.97, gt=0, le=1)
    program_wait_max_us: float = Field(default=250, gt=0)
    program_busy_max: float = Field(default=0.985, gt=0, le=1)
    lateness_p99_max_us: float = Field(default=1000, gt=0)
    lateness_max_us: float = Field(default=100_000, gt=0)


class Virtual(_Model):
    """Settings of the virtual engine alone (docs/virtual.md).

    In exact time, sources of equal rates keep the phase that they begin with, and one of them may lose every
    packet that finds a queue full. So each flow starts up to `start_jitter_s` late, and each tick of a
    constant bit rate comes up to `tick_jitter` of the time between two late; both are drawn by the run's
    seed. Programs take no time there unless it is charged: `wakeup_s` each time that a source or sink is
    woken, by data or by a timer, and `planning_s` each time that the controller plans a request.
    `memory_mib` is what the kernel has.
    """

    start_jitter_s: float = Field(default=START_JITTER_S, ge=0, le=10)
    tick_jitter: float = Field(default=TICK_JITTER, ge=0, le=1)
    wakeup_s: float = Field(default=0.0, ge=0, le=1)
    planning_s: float = Field(default=0.0, ge=0, le=60)
    memory_mib: int = Field(default=2048, ge=512, le=1 << 20)


class SimMptcp(_Model):
    """MPTCP in the simulator (docs/simulator-mptcp.md); the defaults are what Linux does since 5.6.

    `dupack` is what raises duplicate ACKs: disorder within a subflow, as with Linux, or disorder of the
    connection too, as in the MPTCP model of ns-3. `send_buffer_bytes` is that of a whole connection; None is
    that of a TCP connection.
    """

    scheduler: Annotated[str, _one_of(SCHEDULERS)] = "linux"
    congestion_control: Annotated[str, _one_of(COUPLED_CONTROLS)] = "uncoupled"
    dupack: Literal["subflow", "connection"] = "subflow"
    opportunistic_retransmission: bool = False
    penalisation: bool = False
    send_buffer_bytes: BufferBytes | None = None


class Sim(_Model):
    """Settings of the simulator alone (docs/simulator.md); None leaves what `profile` has.

    `profile` is whose TCP it is where neither `[tcp]` nor a key here says otherwise: `linux`, `ns3` (3.37) or
    `rfc`. MSTCP then sends as the library does. `paper` is the MSTCP paper's simulator: the TCP of `ns3`, and
    MSTCP that binds early, paces nothing and trusts its streams. With `binding = "late"` a frame of MSTCP
    gets its stream when one has room, with `"early"` when it is written. `pacing` is that of all connections;
    None paces MSTCP's streams at the rates that their paths are allocated, and nothing else. `arrivals` are
    the times at which constant-bit-rate sources write; `when_full` is what becomes of a write that finds the
    send buffer full: it is left out, as in the paper, or waits. Flows start up to `start_jitter_s` late and
    ticks come up to `tick_jitter` of the time between two late, as in `Virtual`. Series have intervals of
    `sample_s`; 0 leaves them out. `trace` has the files that are made of every packet.
    """

    profile: Literal["linux", "ns3", "rfc", "paper"] = "linux"
    recovery: Literal["classic", "prr", "prr_conservative", "keep"] | None = None
    spurious: Literal["ignored", "eifel", "frto", "dsack", "door"] | None = None
    reordering: Annotated[str, _one_of(RESPONSES)] | None = None
    fast_retransmit: bool | None = None
    initial_window_segments: int | None = Field(default=None, ge=1, le=10_000)
    initial_ssthresh_bytes: int | None = Field(default=None, ge=1, le=1 << 50)
    delayed_ack_segments: int | None = Field(default=None, ge=1, le=1000)
    delayed_ack_timeout_s: float | None = Field(default=None, ge=0, le=60)
    limited_transmit: bool | None = None
    duplicate_threshold: int | None = Field(default=None, ge=1, le=10_000)
    nagle: bool | None = None
    rto_min_s: float | None = Field(default=None, gt=0, le=3600)
    rto_initial_s: float | None = Field(default=None, gt=0, le=3600)
    rto_max_s: float | None = Field(default=None, gt=0, le=86400)
    pacing: Literal["off", "window", "allocated"] | None = None
    binding: Literal["late", "early"] | None = None
    reorder_buffer_bytes: int = Field(default=4 << 20, ge=4096, le=1 << 40)
    identify_single: bool = False
    arrivals: Literal["constant", "poisson"] = "constant"
    when_full: Literal["skip", "wait"] = "skip"
    start_jitter_s: float | None = Field(default=None, ge=0, le=10)
    tick_jitter: float | None = Field(default=None, ge=0, le=1)
    sample_s: float = Field(default=0.25, ge=0, le=3600)
    trace: tuple[Literal["csv", "pcap", "parquet"], ...] = ()
    mptcp: SimMptcp = SimMptcp()

    @model_validator(mode="after")
    def _samples_are_few(self) -> Sim:
        if 0 < self.sample_s < MIN_SAMPLE_S:
            raise ValueError(f"sample_s is 0 (no series) or at least {MIN_SAMPLE_S:g}")
        return self

    def tcp(self) -> dict[str, object]:
        """Return the settings of TCP, those that leave the profile's out."""
        mstcp = {"binding", "reorder_buffer_bytes", "identify_single"}
        others = mstcp | {
            "arrivals",
            "when_full",
            "start_jitter_s",
            "tick_jitter",
            "sample_s",
            "trace",
            "mptcp",
        }
        given = self.model_dump(exclude=others, exclude_none=True)
        return {"pacing": "off", **given, "profile": "ns3"} if self._is_the_papers else given

    @property
    def binds(self) -> Literal["late", "early"]:
        """When a frame of MSTCP gets its stream."""
        return self.binding or ("early" if self._is_the_papers else "late")

    @property
    def start_lateness_s(self) -> float:
        """How late flows start at the most."""
        return self._jitter(self.start_jitter_s, START_JITTER_S)

    @property
    def tick_lateness(self) -> float:
        """How late ticks come at the most, as a part of the time between two."""
        return self._jitter(self.tick_jitter, TICK_JITTER)

    @property
    def connects_ahead_s(self) -> float:
        """How long before a flow's start its connections are opened, as the other engines do."""
        return 0.0 if self._is_the_papers else CONNECT_AHEAD_S

    def _jitter(self, given: float | None, default: float) -> float:
        return given if given is not None else 0.0 if self._is_the_papers else default

    @property
    def _is_the_papers(self) -> bool:
        return self.profile == "paper"


SPLIT_ACKS = "split"
"""A path for each acknowledgement is drawn, as for the data."""


class Ppfs(_Model):
    """Settings of flows that are split by packets.

    `ack_path` is where their acknowledgements go, all of them: the shortest path, as in the paper, or
    `reverse:<index>`, back along one of the flow's own paths. `split` draws a path for each of them, as for
    the data; the simulator alone does that.
    """

    ack_path: Annotated[str, Field(pattern=r"^(shortest|split|reverse:(0|[1-9][0-9]?))$")] = "shortest"


class Mstcp(_Model):
    """Settings of MSTCP's sources: `scheduler` picks the stream of each frame; the library's by default.

    `trust_streams` is of the simulator: what a stream took counts as delivered, as in the paper. False: the
    library's whole protocol, which every live run has. None: true with early binding, which has no other.
    """

    scheduler: Literal["stochastic", "weighted", "earliest", "redundant"] = "weighted"
    trust_streams: bool | None = None


class Mptcp(_Model):
    """Settings of kernel MPTCP.

    `receive_buffer_bytes` is that of a whole connection, which its subflows share. `scheduler` is
    `net.mptcp.scheduler` of the hosts; the simulator has those beside the default by the same names.
    """

    scheduler: Literal["default", "roundrobin", "minrtt", "redundant"] = "default"
    receive_buffer_bytes: BufferBytes | None = None


class SecondLink(_Model):
    """Where the second interface of a terminal leads, for the protocols that use one."""

    switch: NodeName
    rate_bps: Rate
    delay_us: float = Field(ge=0, le=10e6, allow_inf_nan=False)


class Scenario(_Model):
    """A scenario file.

    `packet_bytes` is the Ethernet frame of a full segment without its checksum. Sources start `warm_up_s`
    before the measurement and, in file order, `stagger_s` after each other; afterwards the sinks have
    `drain_s` to read what is on its way.
    """

    format: Literal[1]
    name: Name
    description: str = ""
    network: str
    variant: str | None = None
    packet_bytes: int = Field(default=1514, ge=200, le=9014)
    duration_s: float = Field(default=20.0, gt=0, le=86400)
    warm_up_s: Seconds = 0.0
    stagger_s: Seconds = 0.0
    drain_s: Seconds = 30.0
    protocols: tuple[Name, ...] = Field(default=("ospf", "mstcp"), min_length=1)
    tcp: Tcp = Tcp()
    ppfs: Ppfs = Ppfs()
    mstcp: Mstcp = Mstcp()
    mptcp: Mptcp = Mptcp()
    second_links: dict[NodeName, SecondLink] = Field(default_factory=dict)
    live: Live = Live()
    virtual: Virtual = Virtual()
    sim: Sim = Sim()
    events: tuple[Event, ...] = ()
    traces: tuple[LinkTrace, ...] = ()
    programs: tuple[Program, ...] = ()
    cases: dict[Name, Case] = Field(min_length=1)

    @model_validator(mode="after")
    def _cases_have_traffic(self) -> Scenario:
        for name, case in self.cases.items():
            runs = any(not each.cases or name in each.cases for each in self.programs)
            if not case.flows and case.demands is None and not runs:
                raise ValueError(f"cases.{name} needs flows, demands = a file of them, or programs")
        return self

    @property
    def overhead_bytes(self) -> int:
        """Ethernet, IPv4 and TCP header and options of every data segment."""
        return ETHERNET_BYTES + IP_TCP_BYTES + TIMESTAMP_OPTION_BYTES * self.tcp.has_timestamps

    def sysctls(self) -> dict[str, str]:
        """Return the hosts' sysctls that are asked for, by full name, as the text the kernel takes."""
        asked = self.tcp.sysctls()
        if self.mptcp.scheduler != DEFAULT:
            asked["net.mptcp.scheduler"] = self.mptcp.scheduler
        return asked

    @property
    def mptcp_receive_buffer_bytes(self) -> int | None:
        """SO_RCVBUF of an MPTCP connection: as it is set, or four times that of a TCP connection.

        RFC 6182 (section 5.3) wants the bandwidth of all paths together for twice the longest round trip.
        Linux moreover counts a packet's memory, which for small packets is more than twice their payload, and
        lets no packet in, not even the one that all wait for, once those out of order have filled the buffer.
        """
        if self.mptcp.receive_buffer_bytes is not None or self.tcp.receive_buffer_bytes is None:
            return self.mptcp.receive_buffer_bytes
        return 4 * self.tcp.receive_buffer_bytes

    @property
    def mtu_bytes(self) -> int:
        """The hosts' MTU: the packet without its Ethernet header."""
        return self.packet_bytes - ETHERNET_BYTES

    def case(self, name: str) -> Case:
        """Return a case; UnknownName lists those that are there."""
        if name not in self.cases:
            raise UnknownName("case of this scenario", name, self.cases)
        return self.cases[name]


def parse(data: object, source: str) -> Scenario:
    """Check a scenario's data against the schema.

    Raises:
        ScenarioError: with the place of the first thing that is wrong.
    """
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(source, *first_problem(error)) from None


def check_network(checked: Scenario, cases: Sequence[str], network: Network) -> None:
    """Check that all that a scenario names is in the network, of flows those of some cases.

    Raises:
        ScenarioError: with what the network has instead.
    """
    named = [
        (f"cases.{case}.flows.{name}.{end}", "host", getattr(flow, end))
        for case in cases
        for name, flow in checked.case(case).flows.items()
        for end in ("src", "dst")
    ]
    named += [("live.capture", "link", link) for link in checked.live.capture]
    happening: list[tuple[str, Event | LinkTrace | Program]] = [
        *((f"events.{number}", each) for number, each in enumerate(checked.events)),
        *((f"traces.{number}", each) for number, each in enumerate(checked.traces)),
        *((f"programs.{number}", each) for number, each in enumerate(checked.programs)),
    ]
    for place, each in happening:
        unknown = next((case for case in each.cases if case not in checked.cases), None)
        if unknown is not None:
            reason = f"there is no case {unknown!r}; its cases are {', '.join(checked.cases)}"
            raise ScenarioError(checked.name, f"{place}.cases", reason)
        kinds = (kind for kind in ("host", "link") if getattr(each, kind, None) is not None)
        named += [(f"{place}.{kind}", kind, getattr(each, kind)) for kind in kinds]
    for place, kind, name in named:
        _check_there(checked, network, place, kind, name)
    _check_wireless(checked, network)


def _check_there(checked: Scenario, network: Network, place: str, kind: str, name: str) -> None:
    try:
        is_there = name in network.hosts if kind == "host" else bool(network.link(name))
    except KeyError:
        is_there = False
    if not is_there:
        known = network.hosts if kind == "host" else [link.name for link in network.links]
        reason = f"the network has no {kind} {name!r}; its {kind}s are {', '.join(known)}"
        raise ScenarioError(checked.name, place, reason)


def _check_wireless(checked: Scenario, network: Network) -> None:
    """Check that no event and no trace changes what a Wi-Fi link does not have."""
    changed = {
        f"events.{number}": event.links(network)
        for number, event in enumerate(checked.events)
        if event.settings
    }
    changed |= {f"traces.{number}": [network.link(each.link)] for number, each in enumerate(checked.traces)}
    for place, links in changed.items():
        wireless = next((link.name for link in links if link.wifi is not None), None)
        if wireless is not None:
            reason = f"{wireless} is a Wi-Fi link, which can only go down and up"
            raise ScenarioError(checked.name, place, reason)


def first_problem(error: ValidationError) -> tuple[str, str]:
    """Return place and reason of the first problem that pydantic found."""
    problem = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in _keys_alone(problem["loc"]))
    if problem["type"] == "extra_forbidden":
        known = _known_keys(problem["loc"][:-1])
        return place, f"there is no such key.{nearest(str(problem['loc'][-1]), known)}".rstrip(".")
    return place, requirement(problem)


def _known_keys(place: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the schema has at a place."""
    models: list[type[BaseModel]] = [Scenario]
    for part in place:
        annotations = [each.model_fields[str(part)] for each in models if str(part) in each.model_fields]
        if annotations:
            models = [found for field in annotations for found in _models_in(field.annotation)]
    return [name for model in models for name in model.model_fields]


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models of an annotation, with those of their kinds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for kind in annotation.__subclasses__():
            yield from _models_in(kind)
    for inner in get_args(annotation):
        yield from _models_in(inner)


def what_is_wrong(error: ValidationError) -> str:
    """Return the first problem that pydantic found, as `place: reason`."""
    place, reason = first_problem(error)
    return f"{place}: {reason}" if place else reason


def _keys_alone(place: tuple[int | str, ...]) -> Iterator[int | str]:
    """Yield the keys of a place; pydantic also names the `kind` of a table that has one."""
    before: int | str = ""
    for part in place:
        if not (before in KINDS and part in KINDS[before]):
            yield part
        before = part


def available() -> dict[str, Path]:
    """Return the built-in scenarios by name."""
    return {path.stem: path for path in sorted(SCENARIO_FOLDER.glob("*.toml"))}


def path_of(spec: str) -> Path:
    """Return the file of a scenario: a built-in one's name, or its path.

    Raises:
        UnknownName: no built-in scenario has this name, and it is no path either.
    """
    path = available().get(spec)
    if path is None:
        path = Path(spec)
        if path.suffix != ".toml" and not path.exists():
            raise UnknownName("scenario", spec, available())
    return path


def _of_results(path: Path) -> str | None:
    """Return what to do with results that were given for a scenario; None if there is no such file."""
    if not path.is_file():
        return None
    again = f"`mstcp-lab rerun {path}` makes the runs of a results document again"
    return f"is JSON, and a scenario is TOML; {again}"


def load(spec: str) -> Scenario:
    """Read a scenario: the name of a built-in one, or the path of a TOML file.

    Files that it names are not read yet: `experiments.model.files.with_files` does that, for a network.

    Raises:
        UnknownName: no built-in scenario has this name, and it is no path either.
        ScenarioError: the file cannot be read or is no scenario.
    """
    path = path_of(spec)
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        data = toml.loads(text)
    except OSError as error:
        reason = _of_results(path / "results.json") or f"cannot be read: {error.strerror}"
        raise ScenarioError(str(path), "", reason) from None
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        is_json = text.lstrip().startswith("{")
        reason = (_of_results(path) if is_json else None) or f"is not TOML: {error}"
        raise ScenarioError(str(path), "", reason) from None
    except RecursionError:
        raise ScenarioError(str(path), "", "is nested too deeply") from None
    return parse(data, path.name)
