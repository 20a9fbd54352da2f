"""Scenarios as data: what is sent over which network, with which settings. Checked, never executed.

One file holds several named cases (`[cases.1]`, `[cases.2]`), which share the network and the settings and
differ in their flows. Nothing here knows an engine: live, virtual and simulated runs read the same
`Scenario`. Settings that only one engine has stand in a table named after it (`[live]`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from experiments.errors import ScenarioError, UnknownName
from experiments.model.data import Data
from experiments.model.dynamics import Event, LinkTrace
from experiments.model.problems import first_problem
from experiments.model.programs import Program
from experiments.model.settings import (
    DEFAULT,
    CongestionControl,
    Live,
    Mptcp,
    Mstcp,
    Name,
    NodeName,
    Ppfs,
    Quic,
    Rate,
    SecondLink,
    Seconds,
    Sim,
    Tcp,
    Virtual,
)
from experiments.workloads import Cbr, Workload
from topologies import toml
from topologies.model import IpVersion, Network

SCENARIO_FOLDER = Path(__file__).parents[1] / "scenarios"
ETHERNET_BYTES = 14
IP_BYTES: dict[IpVersion, int] = {4: 20, 6: 40}
TCP_BYTES = 20
TIMESTAMP_OPTION_BYTES = 12
"""RFC 7323 section 3.2: 10 bytes, padded to 12."""

OBJECTIVES = ("even_split", "fair", "max_min", "max_throughput_min_delay", "min_max_utilisation")
"""Allocations that the controller computes; any other name stands for one that the flows give."""


class GivenPath(Data):
    """One path of a flow, written down in the scenario: nodes from host to host and its goodput."""

    path: tuple[NodeName, ...] = Field(min_length=3)
    rate_bps: Rate


class Flow(Data):
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


class Demands(Data):
    """A file with many flows (`experiments.model.demands`), relative to the scenario's folder.

    `requested_bps` is asked for by flows of which the file says their size alone.
    """

    file: str = Field(min_length=1)
    requested_bps: Rate | None = None


def _file_alone(value: object) -> object:
    return {"file": value} if isinstance(value, str) else value


class Case(Data):
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


class Scenario(Data):
    """A scenario file.

    `packet_bytes` is the Ethernet frame of a full segment without its checksum, `ip_version` that of all
    packets of flows and programs. Sources start `warm_up_s` before the measurement and, in file order,
    `stagger_s` after each other; afterwards the sinks have `drain_s` to read what is on its way.
    """

    format: Literal[1]
    name: Name
    description: str = ""
    network: str
    variant: str | None = None
    packet_bytes: int = Field(default=1514, ge=200, le=9014)
    ip_version: IpVersion = 4
    duration_s: float = Field(default=20.0, gt=0, le=86400)
    warm_up_s: Seconds = 0.0
    stagger_s: Seconds = 0.0
    drain_s: Seconds = 30.0
    protocols: tuple[Name, ...] = Field(default=("ospf", "mstcp"), min_length=1)
    tcp: Tcp = Tcp()
    ppfs: Ppfs = Ppfs()
    mstcp: Mstcp = Mstcp()
    mptcp: Mptcp = Mptcp()
    quic: Quic = Quic()
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

    @model_validator(mode="after")
    def _captures_are_of_ipv4(self) -> Scenario:
        if self.ip_version == 6 and "pcap" in self.sim.trace:
            raise ValueError(
                "sim.trace: the simulator's captures are of IPv4; leave pcap or ip_version = 6 out"
            )
        return self

    @property
    def overhead_bytes(self) -> int:
        """Ethernet, IP and TCP header and options of every data segment."""
        headers = ETHERNET_BYTES + IP_BYTES[self.ip_version] + TCP_BYTES
        return headers + TIMESTAMP_OPTION_BYTES * self.tcp.has_timestamps

    def sysctls(self) -> dict[str, str]:
        """Return the hosts' sysctls that are asked for, by full name, as the text the kernel takes."""
        asked = self.tcp.sysctls()
        if self.mptcp.scheduler != DEFAULT:
            asked["net.mptcp.scheduler"] = self.mptcp.scheduler
        return asked

    @property
    def quic_window_bytes(self) -> int | None:
        """The window of a QUIC connection: as it is set, or that of an MPTCP connection."""
        return self.quic.window_bytes or self.mptcp_receive_buffer_bytes

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
    """Check a scenario's data against the schema (ScenarioError: with the first place that is wrong)."""
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(source, *first_problem(error, Scenario)) from None


def check_network(checked: Scenario, cases: Sequence[str], network: Network) -> None:
    """Check that all that a scenario names is in the network (ScenarioError: with what is there instead)."""
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


def available() -> dict[str, Path]:
    """Return the built-in scenarios by name."""
    return {path.stem: path for path in sorted(SCENARIO_FOLDER.glob("*.toml"))}


def path_of(spec: str) -> Path:
    """Return the file of a built-in scenario, or a path (UnknownName: it is neither)."""
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

    Files that it names are not read yet: `experiments.model.demands.with_files` does that, for a network.

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
