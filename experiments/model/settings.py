"""The tables of settings of a scenario: TCP, protocols, and what each engine has of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from experiments.model.data import Data

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
CONNECT_AHEAD_S = 0.4
DEFAULT = "default"


class Tcp(Data):
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


class Live(Data):
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


class Virtual(Data):
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


class SimMptcp(Data):
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


class Sim(Data):
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


class Ppfs(Data):
    """Settings of flows that are split by packets.

    `ack_path` is where their acknowledgements go, all of them: the shortest path, as in the paper, or
    `reverse:<index>`, back along one of the flow's own paths. `split` draws a path for each of them, as for
    the data; the simulator alone does that.
    """

    ack_path: Annotated[str, Field(pattern=r"^(shortest|split|reverse:(0|[1-9][0-9]?))$")] = "shortest"


class Mstcp(Data):
    """Settings of MSTCP's sources: `scheduler` picks the stream of each frame; the library's by default.

    `trust_streams` is of the simulator: what a stream took counts as delivered, as in the paper. False: the
    library's whole protocol, which every live run has. None: true with early binding, which has no other.
    """

    scheduler: Literal["stochastic", "weighted", "earliest", "redundant"] = "weighted"
    trust_streams: bool | None = None


class Mptcp(Data):
    """Settings of kernel MPTCP.

    The buffers are those of a whole connection, which its subflows share. `scheduler` is
    `net.mptcp.scheduler` of the hosts; the simulator has those beside the default by the same names.
    """

    scheduler: Literal["default", "roundrobin", "minrtt", "redundant"] = "default"
    receive_buffer_bytes: BufferBytes | None = None
    send_buffer_bytes: BufferBytes | None = None


class Quic(Data):
    """Settings of QUIC: `window_bytes` may be sent and not be read, on all paths of a connection together."""

    window_bytes: BufferBytes | None = None


class SecondLink(Data):
    """Where the second interface of a terminal leads, for the protocols that use one."""

    switch: NodeName
    rate_bps: Rate
    delay_us: float = Field(ge=0, le=10e6, allow_inf_nan=False)
